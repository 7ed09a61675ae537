import type { ChildProcess } from "node:child_process";
import type { RunEvent } from "#engine/events/event.ts";
import { type CommandEnd, TestProject } from "./kcore.ts";
import { type PrivateRedis, startRedis } from "./redis.ts";
import { startTargets, type Targets } from "./targets.ts";
import { eventually } from "./cluster.ts";

const password = "pass-of-the-queue";

export interface TestWorker {
  readonly child: ChildProcess;
  /** The worker's output so far. */
  readonly text: () => string;
  stop(): Promise<void>;
}

/** A project with real targets, a real Redis, and the keys of a coordinator and of two workers. */
export class QueueWorld {
  readonly #workers: TestWorker[] = [];
  readonly targets: Targets;
  readonly redis: PrivateRedis;
  readonly project: TestProject;

  constructor(targets: Targets, redis: PrivateRedis, project: TestProject) {
    this.targets = targets;
    this.redis = redis;
    this.project = project;
  }

  /** `names`: the workers' names. Nodes t1, t2 … are in DC1 and DC2 in turn. */
  static async start(nodes: number, names: readonly string[] = ["w1", "w2"]): Promise<QueueWorld> {
    // The rights that docs/scale.md names.
    const rights = "~kcore:* &kcore:* -@all +@read +@write +@connection +@blocking +@transaction +@scripting +info";
    const users = [`kcore on >${password} ${rights}`, "default off"];
    const [targets, redis] = await Promise.all([startTargets(nodes), startRedis({ users })]);
    const world = new QueueWorld(targets, redis, new TestProject());
    await world.#write(names);
    return world;
  }

  async #write(names: readonly string[]): Promise<void> {
    const { identityFile, hostKey, addresses, port } = this.targets;
    const entry = async (name: string, roles: readonly string[]): Promise<object> => {
      const { stdout } = await this.project.start(["queue", "key", "-o", "json"], this.#home(name)).ended;
      return { ...(JSON.parse(stdout) as object), name, roles };
    };
    const members = [
      await entry("bastion", ["coordinator"]),
      ...(await Promise.all(names.map((name) => entry(name, ["worker"])))),
    ];
    const queue = { url: `redis://kcore@127.0.0.1:${this.redis.port}`, password: "env:QUEUE_PASSWORD", members };
    const common = `port: ${port}, identityFile: "${identityFile}", hostKeys: ["${hostKey}"]`;
    const lines = addresses.map(
      (address, index) =>
        `  t${index + 1}: { address: ${address}, ${common}, dc: DC${(index % 2) + 1}, stateDir: "${this.project.path}/t${index + 1}" }`,
    );
    this.project.write({
      "project/kcore.yaml": JSON.stringify({ queue }),
      "project/roster/nodes.yaml": `nodes:\n${lines.join("\n")}\n`,
    });
  }

  #home(name: string): Record<string, string> {
    return { KCORE_HOME: `${this.project.path}/home-${name}`, QUEUE_PASSWORD: password };
  }

  /** Starts `kcore worker` as one of the names, and waits until it takes nodes. */
  async worker(
    name: string,
    env: Readonly<Record<string, string>> = {},
    ...flags: readonly string[]
  ): Promise<TestWorker> {
    const { child, ended } = this.project.start(["worker", ...flags], { ...this.#home(name), ...env });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (more: Buffer) => (text += String(more)));
    const stop = async (): Promise<void> => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    };
    const worker = { child, text: () => text, stop };
    this.#workers.push(worker);
    await eventually(() => {
      if (child.exitCode !== null) throw new Error(`the worker ended: ${text}`);
      return text.includes("takes nodes");
    });
    return worker;
  }

  /** Runs kcore on the coordinator. */
  async run(
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<CommandEnd & { readonly events: readonly RunEvent[] }> {
    const end = await this.project.start([...words, "--output", "json"], { ...this.#home("bastion"), ...env }).ended;
    const events = end.stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as RunEvent);
    return { ...end, events };
  }

  start(...words: readonly string[]) {
    return this.project.start(words, this.#home("bastion"));
  }

  async stopWorkers(): Promise<void> {
    for (const worker of this.#workers.splice(0)) await worker.stop();
  }

  async stop(): Promise<void> {
    await this.stopWorkers();
    await this.project.remove();
    await this.redis.stop();
    await this.targets.stop();
  }
}
