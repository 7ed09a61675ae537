import { writeFileSync } from "node:fs";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { createRun, type RunFolder } from "#engine/run/run-folder.ts";
import { lastDryRun } from "#cli/watch/last-dry-run.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("The last dry run of a request", () => {
  let dir: TempDir;
  let created = Date.UTC(2026, 10, 21);
  beforeEach(async () => (dir = await makeTempDir("last-dry-run")));
  afterEach(() => dir.remove());

  const record = async (
    events: readonly RunEvent[],
    request: Parameters<typeof runRequest>[0],
    revision = "one",
  ): Promise<RunFolder> => {
    const made = { project: dir.path, who: "op@bastion", created: (created += 1000), attended: false, revision };
    const { folder } = await createRun({ ...made, request: runRequest(request) });
    writeFileSync(folder.events, events.map(formatEvent).join(""));
    return folder;
  };
  const dry = recordedRun("dry-run");
  const count = (outcome: string) =>
    dry.filter(
      (event) => /^(step|action)\.finished$/.test(event.type) && "outcome" in event && event.outcome === outcome,
    ).length;

  it("is the newest that came to its end, of the same target and parameters", async () => {
    await record(dry, { dryRun: true, on: "n1" });
    await record(dry, { dryRun: true, on: "n1,n2", params: { size: "1" } });
    await record(dry.slice(0, -1), { dryRun: true, on: "n1" });
    await record(dry, { dryRun: false, on: "n1" });
    const told = await lastDryRun(await record([], { on: "n1" }));
    expect(told).to.deep.equal({
      at: Date.UTC(2026, 10, 21) + 1000,
      wouldChange: count("would-change"),
      unknown: count("unknown"),
      failed: count("failed"),
      isSame: true,
    });
    expect(count("would-change")).to.be.above(0);
  });

  it("says that the project is another by now; is none where there is none, nor of a dry run itself", async () => {
    await record(dry, { dryRun: true }, "two");
    expect(await lastDryRun(await record([], {}))).to.include({ isSame: false });
    expect(await lastDryRun(await record([], { on: "elsewhere" }))).to.equal(undefined);
    expect(await lastDryRun(await record([], { dryRun: true }))).to.equal(undefined);
  });
});
