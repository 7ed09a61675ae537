import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { quantile, type Figure } from "./figures.ts";

/** Times from the request at one controller until another, with the write on its disk, reports the write; delay lines make the RTT. */
export async function benchVisible(): Promise<readonly Figure[]> {
  return [
    await visibleAt(0, "p50 ≤ 10 ms", 200),
    await visibleAt(2, "p50 ≤ 10 ms", 200),
    await visibleAt(80, "p50 ≤ 96 ms (1.2 RTT)", 60),
  ];
}

async function visibleAt(rtt: number, goal: string, count: number): Promise<Figure> {
  const lines: DelayLine[] = [];
  const cluster = await createTestCluster();
  const { controllers, stop } = await startControllers(cluster, 2, {
    processes: true,
    async advertise(_index, endpoint) {
      const line = await startDelayLine({ target: parseEndpoint(endpoint), latency: rtt / 2 });
      lines.push(line);
      return `127.0.0.1:${line.port}`;
    },
  });
  try {
    const [a, b] = controllers as [TestController, TestController];
    const seen = new Map<string, () => void>();
    const watch = await b.operator.open("watch", { prefixes: ["object/"] });
    const reader = createInterface({ input: watch });
    reader.on("line", (line) => {
      const { key } = JSON.parse(line) as { readonly key?: string };
      if (key !== undefined) seen.get(key)?.();
    });
    const times: number[] = [];
    for (let index = 0; index < count; index++) {
      const name = `v${rtt}-${index}`;
      const visible = new Promise<void>((resolve) => seen.set(`object/Bench/${name}`, resolve));
      const began = performance.now();
      await a.operator.call("putObject", { value: { index } }, { id: `Bench/${name}` });
      await visible;
      times.push(performance.now() - began);
      await sleep(5);
    }
    reader.close();
    watch.destroy();
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)].map((time) => `${time.toFixed(1)} ms`);
    return { name: `durable and visible at a peer, RTT ${rtt} ms`, value: `p50 ${p50}`, goal, note: `p99 ${p99}` };
  } finally {
    await stop();
    for (const line of lines) await line.close();
    await cluster.remove();
  }
}
