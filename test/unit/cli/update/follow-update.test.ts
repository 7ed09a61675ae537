import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect } from "chai";
import type { UpdateView } from "#api/update-schemas.ts";
import type { Cluster } from "#cli/cluster/open-cluster.ts";
import type { HookRunner } from "#actions/hook-runner.ts";
import { getUpdate } from "#cli/update/ask-updates.ts";
import { followUpdate, getUpdateSince, runUpdateHooks } from "#cli/update/follow-update.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";
import { inProject } from "#support/in-project.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { rolloutNode, rolloutView } from "#support/update-views.ts";

const endpoint = "192.0.2.11:9090";

describe("following a rollout", () => {
  it("reports a lost controller above the drawing, and leaves no rows of former drawings", async () => {
    const terminal = new FakeTerminal(120, 30);
    const underWay = rolloutView([rolloutNode(1, { phase: "activating" }), rolloutNode(2)]);
    const over = rolloutView([rolloutNode(1, { phase: "succeeded" }), rolloutNode(2, { phase: "succeeded" })], {
      phase: "succeeded",
    });
    const views: UpdateView[] = [underWay, over];
    const watch = new PassThrough();
    const watches = [() => Promise.reject(new Error("connection lost")), () => Promise.resolve(watch)];
    const cluster = clusterOf({ open: () => watches.shift()?.(), call: () => Promise.resolve(views.shift() ?? over) });

    expect(await followUpdate(cluster, underWay.name, { output: "table", stdout: terminal.stdout })).to.equal(0);
    const screen = screenOf(terminal.written);
    expect(screen[0]).to.equal(`${endpoint}: connection lost; the next controller is asked`);
    expect(screen.filter((line) => line.startsWith("release-0-4-0 "))).to.have.length(1);
    expect(screen.join("\n")).to.match(/^succeeded for /m);
  });

  it("begins with the applied generation, also if the controller lags behind", async () => {
    const former = rolloutView([], { generation: 1, phase: "succeeded" });
    const present = rolloutView([], { generation: 2 });
    const views = [former, former];
    const cluster = clusterOf({ call: () => Promise.resolve(views.shift() ?? present) });
    expect((await getUpdateSince(cluster, present.name, { generation: 2 })).generation).to.equal(2);
    expect((await getUpdateSince(cluster, present.name)).generation).to.equal(2);
  });

  it("refuses a controller's answer about another update", async () => {
    const cluster = clusterOf({
      endpoint: { host: "192.0.2.11", port: 9090 },
      call: () => Promise.resolve(rolloutView([], { name: "another" })),
    });
    const refused = "its answer is about the update “another”, not “release-0-4-0” (200 ANSWER_INVALID)";
    expect((await problemsOfRejection(getUpdate(cluster, "release-0-4-0"))).join()).to.contain(refused);
    expect((await problemsOfRejection(getUpdateSince(cluster, "release-0-4-0"))).join()).to.contain(refused);
  });

  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    it(`at ${signal} ends its hooks, and then itself with exit code 130`, async () => {
      const terminal = new FakeTerminal(120, 30);
      const view = rolloutView([rolloutNode(1, { phase: "draining", hook: "drain" })]);
      const started = Promise.withResolvers<undefined>();
      let isClosed = false;
      const hooks: HookRunner = {
        startHooks: () => started.resolve(undefined),
        isNeeded: () => true,
        close: () => Promise.resolve(void (isClosed = true)),
      };
      const openHooks = () => Promise.resolve(hooks);
      const client = { open: () => Promise.resolve(new PassThrough()), call: () => Promise.resolve(view) };
      const ended = followUpdate(clusterOf(client), view.name, { output: "json", stdout: terminal.stdout, openHooks });
      await started.promise;
      expect(process.listenerCount(signal)).to.be.above(0);
      process.emit(signal);
      expect(await ended).to.equal(130);
      expect(isClosed).to.equal(true);
    });
});

describe("kcore update cluster run-hooks", () => {
  it("requires exactly one update, named as argument or by a manifest", async () => {
    const problem = async (given?: string, filename: readonly string[] = []): Promise<string | undefined> =>
      (await problemsOfRejection(runUpdateHooks(given, { filename, output: "table" })))[0];
    expect(await problem()).to.match(/^no update is named \[USAGE\]/);
    const text = `kind: ClusterUpdate
metadata: { name: u1 }
spec: { target: { version: 0.4.0 }, selector: { allNodes: true } }
`;
    await inProject({ "u1.yaml": text }, async (project) => {
      expect(await problem("u1", [join(project, "u1.yaml")])).to.match(
        /^2 updates are named, and one is wanted \[USAGE\]/,
      );
    });
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

/** The lines on a terminal that supports only cursor-up and erase-below, the sequences of a redraw. */
function screenOf(written: string): readonly string[] {
  const [first = "", ...drawn] = written.split("\u001B[");
  const lines = first.split("\n").slice(0, -1);
  for (const part of drawn) {
    const [, up, text = ""] = /^(?:(\d+)A|J([^]*))$/.exec(part) ?? expect.fail(`unexpected sequence: ${part}`);
    if (up === undefined) lines.push(...text.split("\n").slice(0, -1));
    else lines.length -= Number(up);
  }
  return lines;
}
