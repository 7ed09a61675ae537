import { mkdir, watch } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Controllers } from "#api/ask.ts";
import type { Log } from "#api/log.ts";
import { readAccepted, readReport, updatesFolder } from "#updater/files.ts";
import { readStatement, type StatementFiles } from "#updater/read-statement.ts";
import { openCourier } from "./courier.ts";
import { followOrders, followWhileConcerned, type NodeUpdates } from "./follow-orders.ts";

export interface NodeUpdatesParts {
  readonly nodeId: string;
  readonly stateDir: string;
  readonly tls: StatementFiles;
  /** Connections of its own: an exchange waits for its answer. */
  readonly controllers: Controllers;
  readonly signal: AbortSignal;
  readonly log: Log;
}

export function followUpdates(parts: NodeUpdatesParts): NodeUpdates {
  return followWhileConcerned(parts, (signal) => follow({ ...parts, signal }));
}

async function follow({ nodeId, stateDir, tls, controllers, signal, log }: NodeUpdatesParts): Promise<void> {
  const folder = updatesFolder(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await followOrders({
    nodeId,
    readReport: () => readReport(folder),
    readAccepted: () => readAccepted(folder),
    watch: (either) => watch(folder, { signal: either }),
    exchange: (said, either) => controllers.ask((client) => client.call("exchangeUpdate", said, { signal: either })),
    courier: openCourier({ folder, controllers, verify: (signed) => readStatement(signed, tls), log, signal }),
    sleep: (ms, either) => sleep(ms, undefined, { signal: either }),
    signal,
    log,
  });
}
