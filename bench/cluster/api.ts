import type { ApiClient } from "#api/client.ts";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import { etcdRates } from "./etcd.ts";
import { quantile, ratio, type Figure } from "./figures.ts";
import { load } from "./load.ts";

const clients = [1, 64] as const;
const goals = ["≥ 0.7×", "≥ 1.0×, aim at 1.5×"];

/** Acknowledged writes of 256 bytes a second through the mTLS API of one controller, beside etcd's, in turns. */
export async function benchWrites(folder: string, milliseconds: number): Promise<readonly Figure[]> {
  const rounds = 3;
  const ratios: number[][] = [[], []];
  const figures: Figure[] = [];
  const cluster = await createTestCluster();
  const { controllers, stop } = await startControllers(cluster, 1, { processes: true });
  try {
    const { operator } = controllers[0] as { readonly operator: ApiClient };
    const value = { text: "x".repeat(240) };
    const put = (who: number, index: number) => operator.call("putObject", { value: { ...value, index } }, idOf(who));
    for (let round = 0; round < rounds; round++) {
      const theirs = await etcdRates(`${folder}/${round}`, clients, milliseconds);
      for (const [place, count] of clients.entries()) {
        await load(count, milliseconds / 4, put);
        const { rate, latencies } = await load(count, milliseconds, put);
        ratios[place]?.push(rate / (theirs[place] ?? Number.NaN));
        if (round === rounds - 1) {
          const own = `${rate.toFixed(0)}/s, p50 ${quantile(latencies, 0.5).toFixed(1)} ms, p99 ${quantile(latencies, 0.99).toFixed(1)} ms`;
          figures.push({
            name: `writes through the API against etcd, ${count} client${count === 1 ? "" : "s"}`,
            value: ratio(quantile(ratios[place] ?? [], 0.5)),
            goal: goals[place] ?? "",
            note: `${own}; etcd ${(theirs[place] ?? 0).toFixed(0)}/s`,
          });
        }
      }
    }
    return figures;
  } finally {
    await stop();
    await cluster.remove();
  }
}

function idOf(who: number): { readonly id: string } {
  return { id: `Bench/${who}` };
}
