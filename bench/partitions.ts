import { createTestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import { startNetwork } from "#support/net-hosts.ts";
import { faults, listedConflicts, placeOn, suffer, timeToAgree } from "#support/partitions.ts";
import { seededRandom } from "#support/random.ts";

/**
 * Lets three real controllers in two datacenters suffer so many faults of their network (60 unless told otherwise), each of 1 to 20 s, as root:
 * `node bench/partitions.ts [EPISODES] [SEED]`. Ends with an error when anything acknowledged is lost.
 */
const [episodes = 60, seed = 1] = process.argv.slice(2).map(Number);
const random = seededRandom(seed);
const network = await startNetwork(3);
const cluster = await createTestCluster();
const dcs = ["DC1", "DC1", "DC2"];
const { controllers, stop } = await startControllers(cluster, 3, {
  processes: true,
  dcs,
  place: placeOn(network.hosts),
});
try {
  const acknowledged = new Map<string, number>();
  const times: number[] = [];
  let written = 0;
  for (let index = 0; index < episodes; index++) {
    const fault = faults[index % faults.length];
    if (!fault) break;
    const lastsMs = 1_000 + 19_000 * random() ** 2;
    const episode = await suffer(fault, { controllers, hosts: network.hosts, lastsMs, acknowledged });
    times.push(episode.convergedMs);
    for (const count of episode.acknowledged) written += count;
    const how = `${(lastsMs / 1000).toFixed(1)} s, ${episode.acknowledged.join("/")} writes`;
    console.log(`${fault.name}: ${how}, agreed after ${Math.round(episode.convergedMs)} ms`);
  }
  const due = await contest({ keys: 20, turns: 50 });
  const listed = await listedConflicts(controllers);
  if (listed.some((keys) => keys.join() !== due.join())) throw new Error(`conflicts: ${JSON.stringify(listed)}`);
  console.log(`${due.length} keys changed on both sides of a cut, as many conflicts on each controller`);
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  console.log(`${episodes} episodes, ${written} writes acknowledged, 0 lost`);
  console.log(`agreed after p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
} finally {
  await stop();
  await network.close();
  await cluster.remove();
}

/** DC2 is cut off, and each key is changed on both sides; returns the keys, each of which is in conflict once when all agree again. */
async function contest({ keys, turns }: { readonly keys: number; readonly turns: number }): Promise<readonly string[]> {
  const rules = faults[0]?.rules(network.hosts.map(({ address }) => address)) ?? [];
  await Promise.all(network.hosts.map((host, index) => host.filter(rules[index] ?? [])));
  const ids = Array.from({ length: keys }, (_, key) => `Both/k${key}`);
  for (let turn = 0; turn < turns; turn++)
    for (const id of ids)
      for (const side of [0, 2]) await controllers[side]?.operator.call("putObject", { value: { side, turn } }, { id });
  await Promise.all(network.hosts.map((host) => host.filter([])));
  await timeToAgree(controllers);
  return ids.map((id) => `object/${id}`).toSorted();
}
