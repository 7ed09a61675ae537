import { setTimeout as sleep } from "node:timers/promises";
import { must } from "./commands.ts";
import { failing, type Controller } from "./controllers.ts";
import type { Cut, SetBack } from "./history.ts";
import { timeToAgree } from "./observe.ts";
import type { Random } from "#support/random.ts";
import type { Workload } from "./workload.ts";

export interface Suffering {
  readonly controllers: readonly Controller[];
  readonly workload: Workload;
  readonly random: Random;
  readonly lastsMs: number;
  readonly cuts: Cut[];
  readonly setBacks: SetBack[];
}

export interface Fault {
  readonly name: string;
  /** Two controllers that write to the same keys: one on each side of a cut, if there are sides. */
  readonly pair: readonly [number, number];
  /** Runs the fault from its beginning to its end. */
  readonly suffer: (of: Suffering) => Promise<void>;
}

type Sides = readonly (readonly number[])[];
const reset = "meta l4proto tcp reject with tcp reset";

/** `verdict` applies to all packets from other sides. The pair with common keys are the first members of the first two sides. */
export function cutBetween(name: string, sides: Sides, verdict = "drop"): Fault {
  const [a = 0] = sides[0] ?? [];
  const [b = 1] = sides[1] ?? [];
  return { name, pair: [a, b], suffer };

  async function suffer({ controllers, cuts, lastsMs }: Suffering): Promise<void> {
    const links = sides.flatMap((side) => everyLink.filter(([at, from]) => side.includes(at) && !side.includes(from)));
    await filter(controllers, ({ index }) => rulesOf(controllers, links, index, verdict));
    const from = performance.now();
    await sleep(lastsMs);
    cuts.push({ from, to: performance.now(), sides });
    await filter(controllers, () => []);
  }
}

/** `[at, from]`: `at` drops packets from `from`. It is unknown which controllers receive which write by a detour. */
export function droppedOn(name: string, links: readonly (readonly [number, number])[], verdict = "drop"): Fault {
  return { name, pair: [0, 2], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    await filter(controllers, ({ index }) => rulesOf(controllers, links, index, verdict));
    await sleep(lastsMs);
    await filter(controllers, () => []);
  }
}

/** On for a while, off for a while. */
export function flapping(
  name: string,
  links: readonly (readonly [number, number])[],
  everyMs: number,
  verdict = "drop",
): Fault {
  return { name, pair: [1, 2], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    const end = performance.now() + lastsMs;
    for (let isCut = true; performance.now() < end; isCut = !isCut) {
      await filter(controllers, ({ index }) => (isCut ? rulesOf(controllers, links, index, verdict) : []));
      await sleep(everyMs);
    }
    await filter(controllers, () => []);
  }
}

export const datacenters: Sides = [
  [0, 1],
  [2, 3],
];
export const everyLink = [0, 1, 2, 3].flatMap((at) =>
  [0, 1, 2, 3].filter((from) => from !== at).map((from) => [at, from] as const),
);
export const betweenDatacenters = everyLink.filter(([at, from]) => at < 2 !== from < 2);
export { reset };

function rulesOf(
  controllers: readonly Controller[],
  links: readonly (readonly [number, number])[],
  index: number,
  verdict: string,
): readonly string[] {
  return links
    .filter(([at]) => at === index)
    .map(([, from]) => `ip saddr ${controllers[from]?.host.address} ${verdict}`);
}

async function filter(
  controllers: readonly Controller[],
  rulesAt: (of: Controller) => readonly string[],
): Promise<void> {
  await Promise.all(controllers.map((controller) => controller.host.filter(rulesAt(controller))));
}

function pick(controllers: readonly Controller[], at: number): Controller {
  const found = controllers[at];
  if (!found) throw new Error(`there is no controller ${at}`);
  return found;
}

/** Kills these with SIGKILL at once; each starts again after its own pause. */
export function killed(name: string, victims: readonly number[]): Fault {
  return { name, pair: [victims[0] === 0 ? 1 : 0, 3], suffer };

  async function suffer({ controllers, lastsMs, random }: Suffering): Promise<void> {
    await sleep(lastsMs / 3);
    const gone = victims.map((at) => pick(controllers, at));
    await Promise.all(gone.map((controller) => controller.end("SIGKILL")));
    await sleep(lastsMs / 3);
    for (const controller of gone) {
      await sleep(random.between(0, lastsMs / 6));
      await controller.start();
    }
  }
}

/** Ends and restarts them in good order, one after the other, as an upgrade does. */
export function restarted(name: string, victims: readonly number[]): Fault {
  return { name, pair: [0, 2], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    for (const at of victims) {
      await sleep(lastsMs / (2 * victims.length));
      await pick(controllers, at).end("SIGTERM");
      await pick(controllers, at).start();
      await sleep(lastsMs / (2 * victims.length));
    }
  }
}

export function frozen(name: string, victims: readonly number[]): Fault {
  return { name, pair: [0, 2], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    for (const at of victims) pick(controllers, at).signal("SIGSTOP");
    await sleep(lastsMs);
    for (const at of victims) pick(controllers, at).signal("SIGCONT");
  }
}

export function fullDisk(name: string, victims: readonly number[]): Fault {
  return { name, pair: [0, 2], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    await sleep(lastsMs / 4);
    for (const at of victims) await pick(controllers, at).disk.fill();
    await sleep(lastsMs / 2);
    for (const at of victims) await pick(controllers, at).disk.free();
    await sleep(lastsMs / 4);
  }
}

/** EIO: the controller ends, since the contents of its disk are unknown. It is started again when the disk is mended. */
export function failingDisk(name: string): Fault {
  return { name, pair: [0, failing], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    const controller = pick(controllers, failing);
    await sleep(lastsMs / 4);
    await controller.disk.fail();
    await sleep(lastsMs / 2);
    await controller.end("SIGKILL");
    await controller.disk.mend();
    await controller.start();
  }
}

/** Sets clocks off by these, and right again at the end. */
export function jumping(name: string, jumps: Readonly<Record<number, readonly string[]>>): Fault {
  return { name, pair: [0, 2], suffer };

  async function suffer({ controllers, lastsMs }: Suffering): Promise<void> {
    const most = Math.max(...Object.values(jumps).map(({ length }) => length));
    for (let turn = 0; turn < most; turn++) {
      for (const [at, offsets] of Object.entries(jumps))
        await pick(controllers, Number(at)).setClock(offsets[turn] ?? "+0s");
      await sleep(lastsMs / most);
    }
    for (const at of Object.keys(jumps)) await pick(controllers, Number(at)).setClock("+0s");
  }
}

/** The controller's folder is set back to an earlier copy, as by a snapshot of its machine; its peers have all writes that it acknowledged. */
export function setBack(name: string, at: number): Fault {
  return { name, pair: [at === 0 ? 1 : 0, at], suffer };

  async function suffer({ controllers, workload, lastsMs, setBacks }: Suffering): Promise<void> {
    const controller = pick(controllers, at);
    const { db } = controller;
    controller.signal("SIGSTOP");
    await must(["cp", "-a", db, `${db}.old`]);
    controller.signal("SIGCONT");
    await sleep(lastsMs);
    for (const { index } of controllers) await workload.hold(index);
    if ((await timeToAgree(controllers)) === undefined)
      throw new Error("they do not agree before the folder is put back");
    await controller.end("SIGKILL");
    const from = performance.now();
    await must(["sh", "-ec", `rm -rf "$0"; mv "$0.old" "$0"`, db]);
    for (const { index } of controllers) workload.release(index);
    await controller.start();
    setBacks.push({ at, from, to: Infinity });
    await sleep(lastsMs / 2);
  }
}
