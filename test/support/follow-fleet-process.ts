import { openCluster } from "#cli/cluster/open-cluster.ts";
import { FleetFollower } from "#cli/top/follow-fleet.ts";
import { readFleet } from "#cli/top/read-fleet.ts";

/** What `kcore top` follows at the controller that is named, as lines: each node with its status, and what becomes of the link. */
const cluster = await openCluster({ controller: process.argv.slice(2) });
const first = await cluster.ask((client) => readFleet(client, new Set(), undefined));
const stop = new AbortController();
process.on("SIGINT", () => stop.abort());
const say = (line: string): void => void process.stdout.write(`${line}\n`);
await new FleetFollower(cluster, {
  signal: stop.signal,
  first,
  show: ({ nodes }) => say(nodes.map(({ hostname, status }) => `${hostname}: ${status}`).join(", ")),
  tell: ({ state }) => say(state),
}).run();
