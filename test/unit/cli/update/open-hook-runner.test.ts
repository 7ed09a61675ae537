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
import { folderOfEachTest } from "#support/temp-dir.ts";
import type { HookRunner } from "#actions/hook-runner.ts";
import { openHookRunner, lockUpdate } from "#cli/update/open-hook-runner.ts";

describe("the hook runner", () => {
  let cluster: TestCluster;
  let project: TestProject;
  let runner: HookRunner;
  let messages: string[];
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
      say: (text) => messages.push(text),
    });
    runner = opened ?? expect.fail("another process runs the hooks");
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
    [messages, answers, attended] = [[], [], []];
    refusal = undefined;
    cluster = await createTestCluster();
    project = new TestProject();
  });
  afterEach(async () => {
    await runner.close();
    await project.remove();
    await cluster.remove();
  });

  describe("reports to the cluster", () => {
    it("its host when it begins, and its end", async () => {
      await attend({});
      expect(attended).to.deep.equal([{ host: hostname(), ended: false }]);
      await runner.close();
      expect(attended.slice(1)).to.deep.equal([{ host: hostname(), ended: true }]);
    });

    it("nothing more if a controller cannot record it, and runs hooks all the same", async () => {
      refusal = new KcoreError({ code: "API_REFUSED", message: "an older controller is registered" });
      await attend({});
      await runner.close();
      expect(messages).to.deep.equal(["the cluster does not show who attends: an older controller is registered"]);
      expect(attended).to.have.length(1);
    });
  });

  it("drains no more nodes at once than the signed maxUnavailable, whatever a controller requests", async () => {
    const viewOf = await attend({ drain: { enabled: true, command: "exec sleep 60" } });
    const nodes = ["n1", "n2", "n3"].map((hostname, at) => ({ id: `${at}`, hostname, hook: "drain", seq: 1 }));
    runner.startHooks(viewOf(...nodes));
    expect(messages).to.deep.equal(["n1: drain is begun"]);
    expect(runner.isNeeded(viewOf(...nodes))).to.equal(true);
  });

  describe("the hooks of one node", () => {
    const file = (name: string): string => join(project.path, name);
    const log = async (): Promise<readonly string[]> =>
      (await readFile(file("done"), "utf8").catch(() => "")).trim().split("\n");
    const untilGo = (): string => `while [ ! -e ${file("go")} ]; do sleep 0.02; done`;
    const logging = (text: string): string => `echo ${text} >> ${file("done")}`;
    const reported = (text: string): Promise<true> => eventually(() => messages.includes(text));
    // Only hooks of the same node delay each other.
    const strategy = { type: "batch", maxUnavailable: 2 };

    it("run one at a time: a hook that is no longer requested is ended before the next one begins", async () => {
      const drain = `trap '${logging("ended")}; exit 0' TERM; ${logging("draining")}; ${untilGo()}`;
      const after = { command: logging("undrained") };
      const viewOf = await attend({ strategy, drain: { enabled: true, command: drain, after } });
      runner.startHooks(viewOf({ hook: "drain", seq: 3 }));
      await eventually(async () => (await log()).includes("draining"));
      runner.startHooks(viewOf({ hook: "undrain", seq: 4 }));
      await reported("n1: undrain is done");
      expect(await log()).to.deep.equal(["draining", "ended", "undrained"]);
      expect(messages).to.deep.equal([
        "n1: drain is begun",
        "n1: drain is ended: it is not asked for any more",
        "n1: undrain is begun",
        "n1: undrain is done",
      ]);
      const owner = { id: "c1", epoch: 1 };
      expect(answers).to.deep.equal([{ node: "1", generation: 1, seq: 4, owner, hook: "undrain", ok: true }]);
    });

    it("continue while views are old or without the node", async () => {
      const viewOf = await attend({ strategy, drain: { enabled: true, command: untilGo() } });
      runner.startHooks(viewOf({ hook: "drain", seq: 3 }));
      for (const node of [{ seq: 3 }, { seq: 2 }, { hook: "undrain", seq: 2 }, {}]) runner.startHooks(viewOf(node));
      runner.startHooks(viewOf());
      await writeFile(file("go"), "");
      await reported("n1: drain is done");
      expect(messages).to.deep.equal(["n1: drain is begun", "n1: drain is done"]);
    });

    it("are ended for the next hook when another process has answered them", async () => {
      const healthGates = [
        { name: "a", command: untilGo() },
        { name: "b", command: "true" },
      ];
      const viewOf = await attend({ strategy, healthGates });
      runner.startHooks(viewOf({ hook: "gate a", seq: 5 }));
      runner.startHooks(viewOf({ hook: "gate b", seq: 5 }));
      await reported("n1: gate b is done");
      expect(messages[1]).to.equal("n1: gate a is ended: it is not asked for any more");
    });

    it("wait for a former hook that ignores SIGTERM, also after its time limit", async () => {
      const drain = `trap '' TERM; ${logging("draining")}; ${untilGo()}; ${logging("drained")}`;
      const after = { command: logging("undrained") };
      const viewOf = await attend({ strategy, drain: { enabled: true, timeoutSeconds: 1, command: drain, after } });
      runner.startHooks(viewOf({ hook: "drain", seq: 3 }));
      await eventually(() => answers.length === 1);
      runner.startHooks(viewOf({ hook: "undrain", seq: 4 }));
      expect(messages).to.deep.equal(["n1: drain is begun", "n1: drain failed: it ran out of its 1 s"]);
      await writeFile(file("go"), "");
      await reported("n1: undrain is done");
      expect(await log()).to.deep.equal(["draining", "drained", "undrained"]);
    });
  });
});

/** A process that takes the lock, reports the result, and holds the lock. */
const lockHolder = `
const { lockUpdate } = await import(process.argv[1]);
process.stdout.write(JSON.stringify(await lockUpdate(process.argv[2])));
setInterval(() => {}, 1000);`;

describe("the lock of the hook runner", () => {
  const lockFolder = folderOfEachTest("place");

  it("is held by one process, and free when that process has ended, also by SIGKILL", async () => {
    const folder = lockFolder();
    const place = import.meta.resolve("#cli/update/open-hook-runner.ts");
    const holder = spawn(process.execPath, ["--input-type=module", "-e", lockHolder, place, folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(holder.stdout, "data");
    expect(await lockUpdate(folder)).to.deep.equal({ taken: holder.pid });
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const mine = await lockUpdate(folder);
    if ("taken" in mine) throw new Error(`${mine.taken} holds the lock`);
    expect(await lockUpdate(folder)).to.deep.equal({ taken: process.pid });
    mine.leave();
    expect(await lockUpdate(folder)).to.have.property("leave");
  });
});
