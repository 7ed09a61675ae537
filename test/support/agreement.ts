import { setTimeout as sleep } from "node:timers/promises";
import type { TestController } from "./controllers.ts";
import { hangLimit } from "./limit.ts";

/** Waits until all controllers have the same state; resolves with the milliseconds that it took. */
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
