import { fork, spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { resolve } from "node:path";
import { createTestCluster, type TestCluster } from "#support/cluster.ts";
import { nodeCredentials, recordAt, startControllers, type TestController } from "#support/controllers.ts";
import { useOf, type Use } from "#support/process-use.ts";
import { quantile, type Figure } from "./figures.ts";
import { fill } from "./join.ts";
import type { FromAgents, ToAgents } from "./size-agents.ts";

const processes = 2;
/** Agents that start a second: each costs both sides a handshake, a registration and a write on every controller. */
const startsPerSecond = Number(process.env["STARTS"] ?? 120);
const measureSeconds = Number(process.env["SECONDS"] ?? 30);

/**
 * The cluster at size: so many agents on so many controllers with 100,000 registers. `CONTROLLERS=3,5`; `SPREAD=no` gives all agents the
 * same order of controllers. CPU is in seconds of CPU, so other work of the machine hardly changes it.
 */
export async function benchSize(counts: readonly number[]): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const controllers of (process.env["CONTROLLERS"] ?? "3,5").split(",").map(Number))
    figures.push(...(await sizeOf(controllers, counts)));
  return figures;
}

async function sizeOf(count: number, sizes: readonly number[]): Promise<readonly Figure[]> {
  const cluster = await createTestCluster();
  const { controllers, stop } = await startControllers(cluster, count, { processes: true });
  const farm = openFarm(controllers);
  const figures: Figure[] = [];
  const note = (name: string, value: string, more: Partial<Figure> = {}): void => {
    const figure = { name: `${count} controllers: ${name}`, value, ...more };
    figures.push(figure);
    process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${figure.name}: ${value} ${more.note ?? ""}\n`);
  };
  try {
    await fill(controllers[0] as TestController);
    let before = 0;
    for (const size of [0, ...sizes]) {
      await farm.grow(cluster, size - before);
      before = size;
      await sleep(15_000);
      const { share, resident, agents, spread, failed } = await measure(controllers, farm);
      const cores = share.map((one) => (one * 100).toFixed(1)).join(", ");
      const memory = resident.map((mb) => mb.toFixed(0)).join(", ");
      note(`${size} agents`, `${Math.max(...share.map((one) => one * 100)).toFixed(1)} % of a core`, {
        note: `each: ${cores} %; ${memory} MB; agents at each: ${spread.join(", ")}; all agents: ${(agents * 100).toFixed(1)} %, failed requests: ${failed}`,
      });
    }
    note("a watch at another controller", await watchDelay(controllers));
    await listNodes(cluster, controllers[0] as TestController, note);
    const [, , third] = controllers as readonly [TestController, TestController, TestController];
    note("restart under this load", await restart(third));
    await lose(third, controllers, farm, note);
    return figures;
  } finally {
    farm.stop();
    await stop();
    await cluster.remove();
  }
}

type Note = (name: string, value: string, more?: Partial<Figure>) => void;
type Farm = ReturnType<typeof openFarm>;

function openFarm(controllers: readonly TestController[]) {
  const endpoints = controllers.map(({ endpoint }) => endpoint);
  const children = Array.from({ length: processes }, () =>
    fork(resolve(import.meta.dirname, "size-agents.ts"), { execArgv: ["--disable-warning=ExperimentalWarning"] }),
  );
  let started = 0;
  let asked = 0;
  const send = (child: ChildProcess, message: ToAgents): void => void child.send(message);
  const askOne = async (child: ChildProcess): Promise<FromAgents> => {
    const tell = asked++;
    send(child, { tell });
    for (;;) {
      const [answer] = (await once(child, "message")) as [FromAgents];
      if (answer.tell === tell) return answer;
    }
  };
  const tell = async () => {
    const all = await Promise.all(children.map(askOne));
    const sum = (of: (one: FromAgents) => number): number => all.reduce((total, one) => total + of(one), 0);
    const at = endpoints.map((endpoint) => sum(({ by }) => by[endpoint] ?? 0));
    return {
      registered: sum((one) => one.registered),
      at,
      failed: sum((one) => one.failed),
      cpuMs: sum((one) => one.cpuMs),
    };
  };
  return {
    tell,
    /** Starts so many more agents, and waits until each has registered. */
    async grow(cluster: TestCluster, more: number): Promise<void> {
      const add = Array.from({ length: more }, () => {
        const id = randomUUID();
        return { id, name: `n${String(started++).padStart(5, "0")}`, ...nodeCredentials(cluster, id) };
      });
      for (let at = 0; at < add.length; at += 32)
        await recordAt(controllers[0] as TestController, ...add.slice(at, at + 32));
      const isSpread = process.env["SPREAD"] !== "no";
      for (const [index, child] of children.entries())
        send(child, {
          add: add.filter((_, at) => at % processes === index),
          endpoints,
          perSecond: startsPerSecond / processes,
          isSpread,
        });
      for (let seen = -1, same = 0; (await tell()).registered < started;) {
        const { registered } = await tell();
        same = registered === seen ? same + 1 : 0;
        seen = registered;
        if (same > 60) return void process.stderr.write(`only ${registered} of ${started} agents are registered\n`);
        await sleep(1000);
      }
    },
    stop: (): void => children.forEach((child) => child.kill()),
  };
}

async function measure(controllers: readonly TestController[], farm: Farm) {
  const before = controllers.map((one) => useOf(one.pid()));
  const agentsBefore = await farm.tell();
  await sleep(measureSeconds * 1000);
  const after = controllers.map((one) => useOf(one.pid()));
  const agentsAfter = await farm.tell();
  const seconds = ((after[0] as Use).at - (before[0] as Use).at) / 1000;
  return {
    share: after.map(({ cpuMs }, index) => (cpuMs - (before[index]?.cpuMs ?? 0)) / 1000 / seconds),
    resident: after.map(({ residentMb }) => residentMb),
    agents: (agentsAfter.cpuMs - agentsBefore.cpuMs) / 1000 / seconds,
    spread: agentsAfter.at,
    failed: agentsAfter.failed - agentsBefore.failed,
  };
}

async function watchDelay([first, second]: readonly TestController[]): Promise<string> {
  const seen = new Map<string, () => void>();
  const watch = await (second as TestController).operator.open("watch", { prefixes: ["object/Seen"] });
  const reader = createInterface({ input: watch });
  reader.on("line", (line) => seen.get((JSON.parse(line) as { readonly key?: string }).key ?? "")?.());
  const times: number[] = [];
  for (let index = 0; index < 100; index++) {
    const isSeen = new Promise<void>((done) => seen.set(`object/Seen/${index}`, done));
    const began = performance.now();
    await first?.operator.call("putObject", { value: { index } }, { id: `Seen/${index}` });
    await isSeen;
    times.push(performance.now() - began);
  }
  reader.close();
  watch.destroy();
  return `p50 ${quantile(times, 0.5).toFixed(1)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms`;
}

async function listNodes(cluster: TestCluster, { endpoint, pid }: TestController, note: Note): Promise<void> {
  for (const words of [[], ["--limit", "100"]]) {
    const controller = useOf(pid());
    const began = performance.now();
    const child = spawn("bin/kcore", ["-s", endpoint, "get", "nodes", ...words], {
      env: { ...process.env, KCORE_HOME: cluster.home },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let rows = -1;
    createInterface({ input: child.stdout }).on("line", () => rows++);
    await once(child, "close");
    const took = ((performance.now() - began) / 1000).toFixed(2);
    const cpu = useOf(pid()).cpuMs - controller.cpuMs;
    note(`kcore get nodes ${words.join(" ")}`, `${took} s`, {
      note: `${rows} rows, ${cpu.toFixed(0)} ms of the controller`,
    });
  }
}

async function restart(controller: TestController): Promise<string> {
  await controller.stop("SIGTERM");
  const began = performance.now();
  await controller.start();
  while (
    !(await controller.operator.call("ready", {}).then(
      ({ ready }) => ready,
      () => false,
    ))
  )
    await sleep(20);
  const { cpuMs } = useOf(controller.pid());
  return `${((performance.now() - began) / 1000).toFixed(2)} s, ${(cpuMs / 1000).toFixed(2)} s of CPU`;
}

/** Kills a controller and starts it again: where the agents are, and how many came a second to the controllers that stayed. */
async function lose(lost: TestController, all: readonly TestController[], farm: Farm, note: Note): Promise<void> {
  const at = async (): Promise<string> => (await farm.tell()).at.join(", ");
  const index = all.indexOf(lost);
  note("agents at each before the loss", await at());
  await lost.stop("SIGKILL");
  const moved = await follow(40, farm, index);
  note("agents at each 40 s after it", await at(), { note: `most that left in a second: ${moved}` });
  await lost.start();
  for (const seconds of [30, 60]) {
    const back = await follow(seconds, farm, index);
    note(`agents at each, ${seconds} s later`, await at(), { note: `most that came back in a second: ${back}` });
  }
  const [first] = all;
  const { nodes } = (await first?.operator.call("ready", {})) ?? {};
  note("nodes that are ready at the end", `${nodes?.ready} of ${nodes?.total}`);
}

async function follow(seconds: number, farm: Farm, index: number): Promise<number> {
  let most = 0;
  let last = (await farm.tell()).at[index] ?? 0;
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    await sleep(1000);
    const now = (await farm.tell()).at[index] ?? 0;
    most = Math.max(most, Math.abs(now - last));
    last = now;
  }
  return most;
}
