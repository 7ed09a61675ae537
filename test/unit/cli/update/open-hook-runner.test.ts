import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { UpdateView } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { createTestCluster, eventually, type TestCluster } from "#support/cluster.ts";
import { TestProject } from "#support/kcore.ts";
import { signUpdate } from "#support/signed-update.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import type { HookRunner } from "#actions/hook-runner.ts";
import { openHookRunner, lockUpdate } from "#cli/update/open-hook-runner.ts";

describe("the hook runner", () => {
  let cluster: TestCluster;
  let project: TestProject;
  let runner: HookRunner;
  let said: string[];
  let answers: object[];
  let attended: object[];
  let refusal: KcoreError | undefined;

  async function attend(more: object): Promise<(...nodes: readonly object[]) => UpdateView> {
    const spec = { target: { version: "1.0.0" }, selector: { allNodes: true }, ...more };
    const signed = signUpdate(cluster, "u1", { spec });
    const call = (method: string, body: object): object => {
      if (method === "answerHook") answers.push(body);
      if (method === "attendUpdate") attended.push(body);
      if (refusal) throw refusal;
      return { address: "192.0.2.1" };
    };
    const opened = await openHookRunner({
      cluster: {
        context: "lab",
        folder: project.path,
        rootPem: cluster.authority.rootPem,
        cluster: cluster.authority.cluster,
        ask: (work: (client: object) => unknown) => Promise.resolve(work({ call })),
      } as never,
      name: "u1",
      project: project.project,
      say: (text) => said.push(text),
    });
    runner = opened ?? expect.fail("somebody else attends");
    return (...nodes) => {
      const nodeStatus = nodes.map((node) => ({ id: "1", hostname: "n1", dc: "DC1", ...node }));
      return {
        generation: 1,
        owner: { id: "c1", epoch: 1 },
        signed,
        nodeStatus,
        spec: { strategy: { maxUnavailable: 1000 } },
      } as unknown as UpdateView;
    };
  }

  beforeEach(async () => {
    [said, answers, attended] = [[], [], []];
    refusal = undefined;
    cluster = await createTestCluster();
    project = new TestProject();
  });
  afterEach(async () => {
    await runner.close();
    await project.remove();
    await cluster.remove();
  });

  describe("C7: tells the cluster", () => {
    it("that it attends on this host, and when it has ended", async () => {
      await attend({});
      expect(attended).to.deep.equal([{ host: hostname(), ended: false }]);
      await runner.close();
      expect(attended.slice(1)).to.deep.equal([{ host: hostname(), ended: true }]);
    });

    it("nothing more where no controller can note it, and attends all the same", async () => {
      refusal = new KcoreError({ code: "API_REFUSED", message: "an older controller is registered" });
      await attend({});
      await runner.close();
      expect(said).to.deep.equal(["the cluster does not show who attends: an older controller is registered"]);
      expect(attended).to.have.length(1);
    });
  });

  describe("what a controller in wrong hands can ask of the bastion", () => {
    it("is no more drains at once than may be down as the bastion signed it", async () => {
      const see = await attend({ drain: { enabled: true, command: "exec sleep 60" } });
      const view = see(...["n1", "n2", "n3"].map((hostname, at) => ({ id: `${at}`, hostname, hook: "drain", seq: 1 })));
      runner.startHooks(view);
      expect(said).to.deep.equal(["n1: drain is begun"]);
      expect(runner.isNeeded(view)).to.equal(true);
    });
  });

  describe("the hooks of one node", () => {
    const file = (name: string): string => join(project.path, name);
    const done = async (): Promise<readonly string[]> =>
      (await readFile(file("done"), "utf8").catch(() => "")).trim().split("\n");
    const untilGo = (): string => `while [ ! -e ${file("go")} ]; do sleep 0.02; done`;
    const noting = (text: string): string => `echo ${text} >> ${file("done")}`;
    const says = (text: string): Promise<true> => eventually(() => said.includes(text));
    // More than one node may be down, so that only the node itself delays the next one.
    const strategy = { type: "batch", maxUnavailable: 2 };

    it("are run one at a time: what is not asked for any more is ended before the next one begins", async () => {
      const drain = `trap '${noting("ended")}; exit 0' TERM; ${noting("draining")}; ${untilGo()}`;
      const after = { command: noting("undrained") };
      const see = await attend({ strategy, drain: { enabled: true, command: drain, after } });
      runner.startHooks(see({ hook: "drain", seq: 3 }));
      await eventually(async () => (await done()).includes("draining"));
      runner.startHooks(see({ hook: "undrain", seq: 4 }));
      await says("n1: undrain is done");
      expect(await done()).to.deep.equal(["draining", "ended", "undrained"]);
      expect(said).to.deep.equal([
        "n1: drain is begun",
        "n1: drain is ended: it is not asked for any more",
        "n1: undrain is begun",
        "n1: undrain is done",
      ]);
      const owner = { id: "c1", epoch: 1 };
      expect(answers).to.deep.equal([{ node: "1", generation: 1, seq: 4, owner, hook: "undrain", ok: true }]);
    });

    it("go on while the node is not well for a moment, and whatever an old view says", async () => {
      const see = await attend({ strategy, drain: { enabled: true, command: untilGo() } });
      runner.startHooks(see({ hook: "drain", seq: 3 }));
      for (const node of [{ seq: 3 }, { seq: 2 }, { hook: "undrain", seq: 2 }, {}]) runner.startHooks(see(node));
      runner.startHooks(see());
      await writeFile(file("go"), "");
      await says("n1: drain is done");
      expect(said).to.deep.equal(["n1: drain is begun", "n1: drain is done"]);
    });

    it("that somebody else has answered make way for the next one", async () => {
      const healthGates = [
        { name: "a", command: untilGo() },
        { name: "b", command: "true" },
      ];
      const see = await attend({ strategy, healthGates });
      runner.startHooks(see({ hook: "gate a", seq: 5 }));
      runner.startHooks(see({ hook: "gate b", seq: 5 }));
      await says("n1: gate b is done");
      expect(said[1]).to.equal("n1: gate a is ended: it is not asked for any more");
    });

    it("wait for one that does not end when it is told to, though it has been answered for", async () => {
      const drain = `trap '' TERM; ${noting("draining")}; ${untilGo()}; ${noting("drained")}`;
      const after = { command: noting("undrained") };
      const see = await attend({ strategy, drain: { enabled: true, timeoutSeconds: 1, command: drain, after } });
      runner.startHooks(see({ hook: "drain", seq: 3 }));
      await eventually(() => answers.length === 1);
      runner.startHooks(see({ hook: "undrain", seq: 4 }));
      expect(said).to.deep.equal(["n1: drain is begun", "n1: drain failed: it ran out of its 1 s"]);
      await writeFile(file("go"), "");
      await says("n1: undrain is done");
      expect(await done()).to.deep.equal(["draining", "drained", "undrained"]);
    });
  });
});

/** A process that takes the lock, reports it, and keeps it. */
const taker = `
const { lockUpdate } = await import(process.argv[1]);
process.stdout.write(JSON.stringify(await lockUpdate(process.argv[2])));
setInterval(() => {}, 1000);`;

describe("the place of the hook runner", () => {
  let dir: TempDir;
  before(async () => (dir = await makeTempDir("place")));
  after(() => dir.remove());

  it("is one process's, and free again when that is gone, however it ended", async () => {
    const folder = dir.path;
    const place = import.meta.resolve("#cli/update/open-hook-runner.ts");
    const holder = spawn(process.execPath, ["--input-type=module", "-e", taker, place, folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(holder.stdout, "data");
    expect(await lockUpdate(folder)).to.deep.equal({ taken: holder.pid });
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const mine = await lockUpdate(folder);
    if ("taken" in mine) throw new Error(`${mine.taken} has it`);
    expect(await lockUpdate(folder)).to.deep.equal({ taken: process.pid });
    mine.leave();
    expect(await lockUpdate(folder)).to.have.property("leave");
  });
});
