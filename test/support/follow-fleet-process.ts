import { openCluster } from "#cli/cluster/open-cluster.ts";
import { openFleet } from "#cli/top/follow-fleet.ts";

/** Prints the updates that `kcore top` gets from the named controller, as lines: each node with its status, and each change of the link. */
const cluster = await openCluster({ controller: process.argv.slice(2) });
const stop = new AbortController();
process.on("SIGINT", () => stop.abort());
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const { run } = await openFleet(cluster, stop.signal);
await run({
  show: ({ nodes }) => say(nodes.map(({ hostname, status }) => `${hostname}: ${status}`).join(", ")),
  showLink: ({ state }) => say(state),
});
