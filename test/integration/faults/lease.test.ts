import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { Secret } from "#engine/step/secret.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { sh } from "#engine/step/sh.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { eventually } from "#support/cluster.ts";
import { startDelayLine } from "#support/delay-line.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

describe("the lease of a run", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "kcore-lease-"))));
  const servers: SshServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  /** Starts an sshd with these lines of configuration. */
  const serve = async (...config: readonly string[]): Promise<Endpoint> => {
    const server = await startSshd({ config });
    servers.push(server);
    return { ...server.endpoint(), name: "n1" };
  };
  /** Starts a run, closes its connection in the first step, and does not reconnect. */
  const loseBastion = async (
    state: string,
    how: Parameters<typeof sessionOn>[1],
    drafts: readonly UnresolvedStep[],
  ) => {
    const run = sessionOn(state, { ...how, retryDelays: [] });
    const work = run.session.perform([{ stage: "s", drafts }]);
    await run.seen(({ type }) => type === "step.started");
    await run.session.host()?.close();
    expect((await work).outcome).to.equal("unreachable");
  };
  const lockReleased = (state: string): Promise<unknown> => {
    const lock = join(state, "lock");
    return eventually(() => readdirSync(lock).every((name) => lstatSync(join(lock, name)).isFile()));
  };
  const touch = (name: string, seconds = 0): Step => ({
    want: {},
    probe: sh``,
    apply: sh`sleep ${seconds}; echo x >>${join(folder, name)}`,
    always: true,
  });

  it("F-2 continues when a silent bastion sends again on the same connection", async () => {
    const state = join(folder, "state");
    const run = sessionOn(state, { runId: "silent" });
    const work = run.session.perform([
      { stage: "s", drafts: [draftOf("slow", touch("slow", 1)), draftOf("next", touch("next"))] },
    ]);
    await run.seen((event) => event.type === "step.started" && event.title === "slow");
    // The runner does the same after 30 s without a beat.
    rmSync(join(state, "runs", "silent", "attached"));
    // The bastion's next beat comes up to 5 s later.
    await eventually(() => existsSync(join(folder, "slow")));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(existsSync(join(folder, "next"))).to.equal(false);
    const { outcome } = await work;
    await run.session.finish(outcome);
    expect([outcome, run.outcomes()]).to.deep.equal(["done", ["slow changed", "next changed"]]);
  });

  it("F-2 continues over a new connection when the old one is dead", async () => {
    const endpoint = await serve();
    const line = await startDelayLine({ target: { port: endpoint.port } });
    try {
      const run = sessionOn(join(folder, "state"), { endpoint: { ...endpoint, port: line.port } });
      const work = run.session.perform([
        { stage: "s", drafts: [draftOf("slow", touch("slow", 3)), draftOf("next", touch("next"))] },
      ]);
      await run.seen((event) => event.type === "step.started" && event.title === "slow");
      line.blackhole();
      await run.seen(({ type }) => type === "node.disconnected");
      line.heal();
      const { outcome } = await work;
      await run.session.finish(outcome);
      expect([outcome, run.outcomes()]).to.deep.equal(["done", ["slow changed", "next changed"]]);
    } finally {
      await line.close();
    }
  });

  it("F-2 ends an abandoned run, and leaves no secret of the run", async () => {
    const endpoint = await serve("SetEnv K_LEASE=1");
    const left = join(folder, "state", "runs", "left");
    const run = sessionOn(join(folder, "state"), { runId: "left", endpoint, retryDelays: [] });
    const apply = sh`echo ${new Secret("hunter2")} >/dev/null; sleep 1`;
    const drafts = [draftOf("secret", { want: {}, probe: sh``, apply, always: true })];
    const work = run.session.perform([{ stage: "s", drafts }]);
    await run.seen(({ type }) => type === "step.started");
    expect(readdirSync(left)).to.include("blobs");
    await run.session.host()?.close();
    expect((await work).outcome).to.equal("unreachable");
    await eventually(() => readFileSync(join(left, "journal"), "utf8").endsWith(" bye abandoned\n"));
    expect(readdirSync(left)).to.not.include("blobs");
  });

  it("ends within seconds after the connection was closed, as by a kill of the run's process", async () => {
    // Ten minutes of silence become 200 s here, so 15 s after a close become 5.
    const endpoint = await serve("SetEnv K_LEASE=200");
    const state = join(folder, "state");
    const shared = { runId: "killed", nonce: "0123456789abcdef".repeat(2), endpoint };
    await loseBastion(state, shared, [draftOf("slow", touch("slow", 1))]);
    await lockReleased(state);
    // The step was not interrupted, and a late bastion continues with a new runner.
    const again = sessionOn(state, { ...shared, resumed: true });
    const drafts = [draftOf("slow", touch("slow", 1)), draftOf("next", touch("next"))];
    const { outcome } = await again.session.perform([{ stage: "s", drafts }]);
    await again.session.finish(outcome);
    expect([outcome, again.outcomes()]).to.deep.equal(["done", ["slow changed", "next changed"]]);
    expect(readFileSync(join(folder, "slow"), "utf8")).to.equal("x\n");
  });

  it("ends after a closed connection even behind a step longer than the lease", async () => {
    // A silence is 5 s here, and a runner waits 2 s after a closed connection: a step of 7 s outlasts both.
    const state = join(folder, "state");
    const endpoint = await serve("SetEnv K_LEASE=100");
    await loseBastion(state, { runId: "long", endpoint }, [draftOf("slow", touch("slow", 7))]);
    await eventually(() => existsSync(join(folder, "slow")));
    // The mark of a closed connection; without it, as after a silence, the runner waits ten minutes.
    expect(existsSync(join(state, "runs", "long", "attached"))).to.equal(true);
    await lockReleased(state);
  });

  it("does not count the seconds of a running step", async () => {
    // The runner waits 7 s after a closed connection, and the step takes 8 s.
    const state = join(folder, "state");
    const shared = { runId: "back", nonce: "0123456789abcdef".repeat(2), endpoint: await serve("SetEnv K_LEASE=280") };
    const drafts = [draftOf("slow", touch("slow", 8)), draftOf("next", touch("next"))];
    await loseBastion(state, shared, drafts);
    await eventually(() => existsSync(join(folder, "slow")));
    const again = sessionOn(state, { ...shared, resumed: true });
    const { outcome } = await again.session.perform([{ stage: "s", drafts }]);
    await again.session.finish(outcome);
    expect(outcome).to.equal("done");
    expect(readFileSync(join(state, "runs", "back", "journal"), "utf8")).to.not.include("abandoned");
  });

  it("ends at once when the node's disk is full and the run is over", async function () {
    const state = join(folder, "full");
    mkdirSync(state, { mode: 0o700 });
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m,mode=0700", "none", state], { stdio: "ignore" });
    } catch {
      this.skip();
    }
    try {
      const run = sessionOn(state, { runId: "full", endpoint: await serve() });
      const apply = sh`cat /dev/zero >${state}/fill || :`;
      const fills = draftOf("fills", { want: {}, probe: sh``, apply, always: true });
      const blob = blobOf(randomBytes(200_000));
      const needs = draftOf("needs", { want: {}, probe: sh``, apply: sh`sha256sum ${blob}`, always: true });
      const { outcome, problem } = await run.session.perform([{ stage: "s", drafts: [fills, needs] }]);
      await run.session.finish(outcome, problem);
      expect(outcome).to.equal("failed");
      rmSync(join(state, "fill"));
      await lockReleased(state);
    } finally {
      execFileSync("umount", ["-l", state]);
    }
  });

  it("F-22 lets four runs at once complete on a node whose sshd allows one session and few logins", async () => {
    const endpoint = await serve("MaxSessions 1", "MaxStartups 1:100:1");
    const results = await Promise.all(
      [0, 1, 2, 3].map(async (index) => {
        const run = sessionOn(join(folder, `state${index}`), { endpoint });
        const drafts = [draftOf("it", touch(`made${index}`))];
        const { outcome } = await run.session.perform([{ stage: "s", drafts }]);
        await run.session.finish(outcome);
        return outcome;
      }),
    );
    expect(results).to.deep.equal(["done", "done", "done", "done"]);
  });
});
