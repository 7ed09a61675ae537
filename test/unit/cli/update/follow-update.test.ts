import { PassThrough } from "node:stream";
import { expect } from "chai";
import type { UpdateView } from "#api/update-schemas.ts";
import type { Cluster } from "#cli/cluster/open-cluster.ts";
import type { HookRunner } from "#actions/hook-runner.ts";
import { getUpdate } from "#cli/update/ask-updates.ts";
import { followUpdate, getUpdateSince } from "#cli/update/follow-update.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { rolloutNode, rolloutView } from "#support/update-views.ts";

const endpoint = "192.0.2.11:9090";

describe("following a rollout at a terminal", () => {
  it("a controller that is lost is told above what is drawn, and nothing of a former drawing stays", async () => {
    const terminal = new FakeTerminal(120, 30);
    const underWay = rolloutView([rolloutNode(1, { phase: "activating" }), rolloutNode(2)]);
    const over = rolloutView([rolloutNode(1, { phase: "succeeded" }), rolloutNode(2, { phase: "succeeded" })], {
      phase: "succeeded",
    });
    const views: UpdateView[] = [underWay, over];
    const watch = new PassThrough();
    const watches = [() => Promise.reject(new Error("it is gone")), () => Promise.resolve(watch)];
    const cluster = clusterOf({ open: () => watches.shift()?.(), call: () => Promise.resolve(views.shift() ?? over) });

    expect(await followUpdate(cluster, underWay.name, { output: "table", stdout: terminal.stdout })).to.equal(0);
    const screen = screenOf(terminal.written);
    expect(screen[0]).to.equal(`${endpoint}: it is gone; the next controller is asked`);
    expect(screen.filter((line) => line.startsWith("release-0-4-0 "))).to.have.length(1);
    expect(screen.join("\n")).to.match(/^succeeded for /m);
  });

  it("begins with what was just applied, though the controller that is asked lags behind", async () => {
    const former = rolloutView([], { generation: 1, phase: "succeeded" });
    const present = rolloutView([], { generation: 2 });
    const views = [former, former];
    const cluster = clusterOf({ call: () => Promise.resolve(views.shift() ?? present) });
    expect((await getUpdateSince(cluster, present.name, { generation: 2 })).generation).to.equal(2);
    expect((await getUpdateSince(cluster, present.name)).generation).to.equal(2);
  });

  it("is of the update that was asked for, whatever a controller answers", async () => {
    const cluster = clusterOf({
      endpoint: { host: "192.0.2.11", port: 9090 },
      call: () => Promise.resolve(rolloutView([], { name: "another" })),
    });
    const refused = "its answer is about the update “another”, not “release-0-4-0” (200 ANSWER_INVALID)";
    expect((await problemsOfRejection(getUpdate(cluster, "release-0-4-0"))).join()).to.contain(refused);
    expect((await problemsOfRejection(getUpdateSince(cluster, "release-0-4-0"))).join()).to.contain(refused);
  });

  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    it(`ends what is done for its nodes when the operator leaves it by ${signal}`, async () => {
      const terminal = new FakeTerminal(120, 30);
      const view = rolloutView([rolloutNode(1, { phase: "draining", hook: "drain" })]);
      const seen = Promise.withResolvers<undefined>();
      let isClosed = false;
      const hooks: HookRunner = {
        startHooks: () => seen.resolve(undefined),
        isNeeded: () => true,
        close: () => Promise.resolve(void (isClosed = true)),
      };
      const openHooks = () => Promise.resolve(hooks);
      const client = { open: () => Promise.resolve(new PassThrough()), call: () => Promise.resolve(view) };
      const ended = followUpdate(clusterOf(client), view.name, { output: "json", stdout: terminal.stdout, openHooks });
      await seen.promise;
      expect(process.listenerCount(signal), "who ends the process by it").to.be.above(0);
      process.emit(signal);
      expect(await ended).to.equal(130);
      expect(isClosed).to.equal(true);
    });
});

function clusterOf(client: object): Cluster {
  return {
    endpoints: [endpoint],
    current: () => endpoint,
    clientAt: () => client,
    ask: (work: (client: object) => Promise<unknown>) => work(client),
  } as unknown as Cluster;
}

/** The lines on a terminal, which knows only the two sequences of a redraw. */
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
