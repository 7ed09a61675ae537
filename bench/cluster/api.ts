import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import { startEtcd } from "./etcd.ts";
import { quantile, ratio, type Figure } from "./figures.ts";
import { openJsonClient, type JsonClient } from "./keep-alive.ts";
import { load } from "./load.ts";

const goals = new Map([
  [1, "≥ 1.15×"],
  [16, "≥ 1.35×"],
  [64, "≥ 1.35×"],
  [256, "≥ 1.0×"],
]);
const rounds = Number(process.env["ROUNDS"] ?? 5);

/** Acknowledged writes a second, of 256 bytes, through the mTLS API of one controller, beside etcd's, by the same client in turns. */
export async function benchWrites(milliseconds: number): Promise<readonly Figure[]> {
  const cluster = await createTestCluster();
  const { controllers, stop } = await startControllers(cluster, 1, { processes: true });
  const etcd = await startEtcd(cluster);
  const { host, port } = parseEndpoint((controllers[0] as TestController).endpoint);
  const kcore = openJsonClient(host, port, cluster.operator);
  try {
    const figures: Figure[] = [];
    for (const [clients, goal] of goals) {
      const ratios: number[] = [];
      const ours: Rates = { rates: [], latencies: [] };
      const theirs: Rates = { rates: [], latencies: [] };
      for (let round = 0; round < rounds; round++) {
        // The first of the two finds an idle disk, so they take turns.
        const turns = [
          () => run(ours, clients, milliseconds, putAtKcore(kcore)),
          () => run(theirs, clients, milliseconds, putAtEtcd(etcd.client)),
        ];
        for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
        ratios.push((ours.rates.at(-1) ?? 0) / (theirs.rates.at(-1) ?? Number.NaN));
      }
      figures.push({
        name: `writes through the API against etcd, ${clients} client${clients === 1 ? "" : "s"}`,
        value: ratio(quantile(ratios, 0.5)),
        goal,
        note: `${tell(ours)}; etcd ${tell(theirs)}`,
      });
    }
    return figures;
  } finally {
    kcore.close();
    etcd.client.close();
    await etcd.stop();
    await stop();
    await cluster.remove();
  }
}

interface Rates {
  readonly rates: number[];
  latencies: readonly number[];
}

type Put = (who: number, index: number) => Promise<void>;

async function run(into: Rates, clients: number, milliseconds: number, put: Put): Promise<void> {
  await load(clients, milliseconds / 4, put);
  const { rate, latencies } = await load(clients, milliseconds, put);
  into.rates.push(rate);
  into.latencies = latencies;
}

function tell({ rates, latencies }: Rates): string {
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(latencies, share).toFixed(1));
  return `${quantile(rates, 0.5).toFixed(0)}/s, p50 ${p50} ms, p99 ${p99} ms`;
}

const text = "x".repeat(232);

function putAtKcore({ post }: JsonClient): Put {
  return (who, index) => post(`/v1/objects/Bench%2F${who}`, { value: { text, index } });
}

function putAtEtcd({ post }: JsonClient): Put {
  return (who, index) =>
    post("/v3/kv/put", { key: btoa(`bench/${who}`), value: btoa(JSON.stringify({ text, index })) });
}
