import { ApiRefusal } from "#api/client.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControllerPlace, TestController } from "./controllers.ts";
import { hangLimit } from "./limit.ts";
import type { NetHost } from "./net-hosts.ts";

/** What can happen to the network between three controllers, the third of which is in another datacenter. */
export interface Fault {
  readonly name: string;
  /** Rules of each host's filter while it lasts. */
  readonly rules: (addresses: readonly string[]) => readonly (readonly string[])[];
  /** On for half a second, off for half a second, and so on. */
  readonly flaps?: true;
  /** This controller is stopped (SIGSTOP) besides. */
  readonly stops?: number;
}

/** Host `at` does with what comes from `from` what `verdict` says. */
type Link = readonly [at: number, from: number, verdict?: string];

function between(...links: readonly Link[]): Fault["rules"] {
  return (addresses) =>
    addresses.map((_, host) =>
      links
        .filter(([at]) => at === host)
        .map(([, from, verdict = "drop"]) => `ip saddr ${addresses[from] ?? ""} ${verdict}`),
    );
}

function both(a: number, b: number, verdict?: string): readonly Link[] {
  return [
    [a, b, verdict ?? "drop"],
    [b, a, verdict ?? "drop"],
  ];
}

const reset = "meta l4proto tcp reject with tcp reset";
const lossy = "numgen random mod 100 < 30 drop";
const everywhere = (verdict?: string): readonly Link[] => [
  ...both(0, 1, verdict),
  ...both(0, 2, verdict),
  ...both(1, 2, verdict),
];
const datacenters = (verdict?: string): readonly Link[] => [...both(0, 2, verdict), ...both(1, 2, verdict)];

export const faults: readonly Fault[] = [
  { name: "DC2 is cut off", rules: between(...datacenters()) },
  { name: "DC2 is refused (reject)", rules: between(...datacenters(reset)) },
  { name: "nobody reaches anybody", rules: between(...everywhere()) },
  { name: "DC2 is heard, and hears nothing", rules: between([2, 0], [2, 1]) },
  { name: "DC2 hears, and is not heard", rules: between([0, 2], [1, 2]) },
  { name: "two reach each other by the third only", rules: between(...both(0, 2)) },
  { name: "each hears the next one only", rules: between([0, 1], [1, 2], [2, 0]) },
  { name: "the line to DC2 flaps", rules: between(...datacenters()), flaps: true },
  { name: "the line to DC2 flaps (reject)", rules: between(...datacenters(reset)), flaps: true },
  { name: "30 % of all packets are lost", rules: between(...everywhere(lossy)) },
  { name: "one is stopped (SIGSTOP)", rules: between(), stops: 1 },
];

/** Where controllers on the hosts of a network live. */
export function placeOn(hosts: readonly NetHost[]): (index: number) => ControllerPlace {
  return (index) => {
    const host = hosts[index];
    if (!host) throw new Error(`there is no host ${index}`);
    return { endpoint: `${host.address}:9090`, through: host.through };
  };
}

export interface Episode {
  readonly fault: string;
  /** Writes that were acknowledged while the fault lasted, for each controller. */
  readonly acknowledged: readonly number[];
  /** From the healing until all held the same, ms. */
  readonly convergedMs: number;
}

/**
 * Lets a fault last for a while; operators write at every controller meanwhile, and stop when it is healed.
 * @throws Error when something that was acknowledged, in this episode or before, is missing anywhere after convergence, or
 * that takes longer than 30 s
 */
export async function suffer(
  fault: Fault,
  {
    controllers,
    hosts,
    lastsMs,
    acknowledged,
  }: {
    readonly controllers: readonly TestController[];
    readonly hosts: readonly NetHost[];
    readonly lastsMs: number;
    /** The highest number acknowledged of each object; kept from episode to episode. */
    readonly acknowledged: Map<string, number>;
  },
): Promise<Episode> {
  const counts = controllers.map(() => 0);
  let isOn = true;
  const write = async (place: number, { operator }: TestController): Promise<void> => {
    for (let turn = 0; isOn; turn++) {
      const id = `Cut/w${place}-${turn % 20}`;
      const number = (acknowledged.get(id) ?? 0) + 1;
      await operator.call("putObject", { value: { number } }, { id }).then(
        () => {
          acknowledged.set(id, number);
          counts[place] = (counts[place] ?? 0) + 1;
        },
        () => undefined,
      );
      await sleep(10);
    }
  };
  const filter = async (rules: readonly (readonly string[])[]): Promise<void> => {
    await Promise.all(hosts.map((host, index) => host.filter(rules[index] ?? [])));
  };
  const writers = controllers.map((controller, place) => write(place, controller));
  const stopped = controllers.find((_, place) => place === fault.stops);
  try {
    if (stopped) process.kill(stopped.pid(), "SIGSTOP");
    const rules = fault.rules(hosts.map(({ address }) => address));
    const end = performance.now() + lastsMs;
    for (let isCut = true; performance.now() < end; isCut = !isCut) {
      await filter(isCut ? rules : []);
      await sleep(Math.max(0, Math.min(fault.flaps ? 500 : Infinity, end - performance.now())));
    }
  } finally {
    isOn = false;
    // What is asked of one that is stopped ends when it goes on.
    if (!stopped) await Promise.all(writers);
    await filter([]);
    if (stopped) process.kill(stopped.pid(), "SIGCONT");
  }
  const healed = performance.now();
  await Promise.all(writers);
  await timeToAgree(controllers);
  const convergedMs = performance.now() - healed;
  const listed = await listedConflicts(controllers);
  // Each of these was written at one controller alone.
  const wrong = [...new Set(listed.flat())].filter((key) => key.startsWith("object/Cut/w"));
  if (wrong.length > 0) throw new Error(`after “${fault.name}” are no conflicts, and listed: ${wrong.join()}`);
  const lost = await findLost(controllers, acknowledged);
  if (lost.length > 0) throw new Error(`after “${fault.name}” is lost: ${lost.join("; ")}`);
  return { fault: fault.name, acknowledged: counts, convergedMs };
}

/** The keys that each controller lists as in conflict, once for each conflict. */
export function listedConflicts(controllers: readonly TestController[]): Promise<readonly (readonly string[])[]> {
  return Promise.all(
    controllers.map(async ({ operator }) => {
      const { conflicts } = await operator.call("listConflicts", {});
      return conflicts.map(({ key }) => key).toSorted();
    }),
  );
}

/** Milliseconds until all controllers hold the same. */
export async function timeToAgree(controllers: readonly TestController[]): Promise<number> {
  const began = performance.now();
  for (;;) {
    const states = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
    const views = new Set(
      states.map(({ vv, digest }) =>
        JSON.stringify([Object.entries(vv).toSorted(([a], [b]) => (a < b ? -1 : 1)), digest]),
      ),
    );
    const took = performance.now() - began;
    if (views.size === 1) return took;
    if (took > hangLimit)
      throw new Error(`they hold different things after ${hangLimit / 1000} s: ${[...views].join("\n")}`);
    await sleep(25);
  }
}

/** Writes a number, and keeps it in mind once it is acknowledged; gives “ok”, or status and reason of the refusal. */
export async function putNumber(
  { operator }: TestController,
  {
    id,
    number,
    acknowledged,
  }: { readonly id: string; readonly number: number; readonly acknowledged: Map<string, number> },
): Promise<string> {
  try {
    await operator.call("putObject", { value: { number } }, { id });
    acknowledged.set(id, number);
    return "ok";
  } catch (error) {
    if (!(error instanceof ApiRefusal)) throw error;
    return `${error.status} ${error.reason}`;
  }
}

/** What was acknowledged and is older, or absent, on some controller. */
export async function findLost(
  controllers: readonly TestController[],
  acknowledged: ReadonlyMap<string, number>,
): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const { operator, endpoint } of controllers) {
    const { objects } = await operator.call("listObjects", {});
    const found = new Map(objects.map(({ kind, name, value }) => [`${kind}/${name}`, (value as Numbered).number]));
    for (const [id, number] of acknowledged)
      if ((found.get(id) ?? 0) < number) lost.push(`${id}: ${number} was told, ${endpoint} holds ${found.get(id)}`);
  }
  return lost;
}

interface Numbered {
  readonly number?: number;
}
