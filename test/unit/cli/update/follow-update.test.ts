import { PassThrough } from "node:stream";
import { expect } from "chai";
import type { ApiClient } from "#api/client.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import type { Cluster } from "#cli/cluster/open-cluster.ts";
import { followUpdate } from "#cli/update/follow-update.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";
import { rolloutNode, rolloutView } from "#support/update-views.ts";

describe("following a rollout at a terminal", () => {
  it("a controller that is lost is told above what is drawn, and nothing of a former drawing stays", async () => {
    const terminal = new FakeTerminal(120, 30);
    const underWay = rolloutView([rolloutNode(1, { phase: "activating" }), rolloutNode(2)]);
    const over = rolloutView([rolloutNode(1, { phase: "succeeded" }), rolloutNode(2, { phase: "succeeded" })], {
      phase: "succeeded",
    });
    const views: UpdateView[] = [underWay, over];
    const endpoint = "192.0.2.11:9090";
    const watch = new PassThrough();
    watch.write(`${JSON.stringify({ type: "synced" })}\n`);
    const watches = [() => Promise.reject(new Error("it is gone")), () => Promise.resolve(watch)];
    const client = {
      open: () => watches.shift()?.(),
      call: () => Promise.resolve(views.shift() ?? over),
    } as unknown as ApiClient;
    const cluster = {
      endpoints: [endpoint],
      current: () => endpoint,
      clientAt: () => client,
      ask: (work: (client: ApiClient) => Promise<unknown>) => work(client),
    } as unknown as Cluster;

    expect(await followUpdate(cluster, underWay.name, { output: "table", stdout: terminal.stdout })).to.equal(0);
    const screen = screenOf(terminal.written);
    expect(screen[0]).to.equal(`${endpoint}: it is gone; the next controller is asked`);
    expect(screen.filter((line) => line.startsWith("release-0-4-0 "))).to.have.length(1);
    expect(screen.join("\n")).to.match(/^succeeded for /m);
  });
});

/** What a terminal shows of it: lines, and the two sequences by which they are drawn anew. */
function screenOf(written: string): readonly string[] {
  const [first = "", ...drawn] = written.split("\u001B[");
  const lines = first.split("\n").slice(0, -1);
  for (const part of drawn) {
    const [, up, text = ""] = /^(?:(\d+)A|J([^]*))$/.exec(part) ?? expect.fail(`no sequence that it draws by: ${part}`);
    if (up === undefined) lines.push(...text.split("\n").slice(0, -1));
    else lines.length -= Number(up);
  }
  return lines;
}
