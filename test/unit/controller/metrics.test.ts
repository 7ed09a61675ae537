import { expect } from "chai";
import { createMetrics } from "#controller/metrics.ts";

interface Condition {
  readonly isReady?: boolean;
  readonly isUnheard?: boolean;
  readonly turnedOut?: string;
}

async function readMetrics({ isReady = true, isUnheard = false, turnedOut }: Condition): Promise<string> {
  const status = { peers: [], alarms: [], registers: 0, tombstones: 0, ready: true, catchingUp: false };
  const metrics = createMetrics(
    {
      self: { controllerId: "c1", dc: "DC1", cluster: "lab", version: "1" },
      replica: {
        status: () => status,
        conflicts: () => [],
        isUnheard: () => isUnheard,
        turnedOut: () => turnedOut,
      } as never,
    },
    {
      nodes: { countByStatus: () => new Map() } as never,
      certificateEnds: { all: () => new Map() } as never,
      isReady: () => isReady,
    },
    { clock: () => 0, connections: () => 0 },
  );
  return metrics.text();
}

const valueOf = (text: string, name: string): string | undefined =>
  new RegExp(`^${name}\\{.*\\} (\\d)$`, "m").exec(text)?.[1];

describe("a controller's metrics", () => {
  it("show a controller as read-only if no member accepts or answers it", async () => {
    expect(valueOf(await readMetrics({}), "kcore_read_only")).to.equal("0");
    expect(valueOf(await readMetrics({ isUnheard: true }), "kcore_read_only")).to.equal("1");
    expect(valueOf(await readMetrics({ turnedOut: "c2 answers no" }), "kcore_read_only")).to.equal("1");
  });

  it("show a controller as not ready if it answers no requests", async () => {
    expect(valueOf(await readMetrics({}), "kcore_ready")).to.equal("1");
    expect(valueOf(await readMetrics({ isReady: false }), "kcore_ready")).to.equal("0");
  });
});
