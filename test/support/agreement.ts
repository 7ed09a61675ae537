import { setTimeout as sleep } from "node:timers/promises";
import { ApiRefusal } from "#api/client.ts";
import type { TestController } from "./controllers.ts";
import { hangLimit } from "./limit.ts";

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

/** Writes a number, and records it once it is acknowledged; gives “ok”, or the refusal's status and reason. */
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

/** The acknowledged values that some controller lacks or holds only in an older version. */
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
