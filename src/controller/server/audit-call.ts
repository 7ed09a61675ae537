import type { IncomingMessage } from "node:http";
import { runHeader } from "#api/client.ts";
import { plainAddress } from "#api/listen.ts";
import type { Log, LogFields } from "#api/log.ts";
import type { AcceptedBodyOf, MethodName } from "#api/methods.ts";
import type { KnownCaller } from "./caller.ts";

/** A request whose caller and method are known. */
export interface IdentifiedRequest {
  readonly name: MethodName;
  /** The path's `{id}`; empty if it has none. */
  readonly id: string;
  readonly caller: KnownCaller;
  /** The request's id in the audit, and in its answer's `x-request-id`. */
  readonly requestId: string;
  /** The body as the schema parsed it; absent until then, and if the schema refused it. */
  body?: unknown;
  reply?: unknown;
}

type Details = { readonly [Name in MethodName]?: (body: AcceptedBodyOf<Name>) => LogFields };

// Names, keys' fingerprints and reasons; never values, which could contain a secret (S-7).
const details: Details = {
  approveNode: ({ reason }) => ({ reason }),
  rejectNode: ({ reason }) => ({ reason }),
  removeNode: ({ reason }) => ({ reason }),
  removeController: ({ reason }) => ({ reason }),
  setLabels: ({ set, remove }) => ({ set: Object.keys(set), remove }),
  setTaints: ({ set, remove }) => ({ set: set.map(({ key }) => key), remove }),
  registerController: ({ spki, address, dc }) => ({ spki, address, dc }),
  recordCertificate: ({ serial, role, id, spki }) => ({ serial, role, holder: id, spki }),
  putBundle: ({ size }) => ({ size }),
  revoke: ({ serial, spki, reason }) => ({ serial, spki, reason }),
  applyUpdate: ({ again }) => ({ again }),
  approveUpdate: ({ generation, hash }) => ({ generation, hash }),
  rollbackUpdate: ({ now }) => ({ now }),
  attendUpdate: ({ host, ended }) => ({ host, ended }),
  answerHook: ({ node, hook, generation, ok }) => ({ node, hook, generation, ok }),
};

const runId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/;
/** The audit's entry about an answered request: caller, method, object, the run that sent the request, outcome. */
export function auditFields(
  { name, id, caller, requestId, body, reply }: IdentifiedRequest,
  request: IncomingMessage,
  { status, code }: { readonly status: number; readonly code?: string },
): LogFields {
  const run = request.headers[runHeader];
  const describe = details[name] as ((body: unknown) => LogFields) | undefined;
  const isOwn = caller.identity.role === "node";
  const { result, serial } = (reply ?? {}) as { readonly result?: unknown; readonly serial?: unknown };
  return {
    method: name,
    by: `${caller.identity.role} ${caller.identity.id}`,
    key: caller.key,
    ...(id === "" ? (isOwn ? { target: caller.id } : {}) : { target: id }),
    ...(body === undefined ? {} : describe?.(body)),
    ...(typeof serial === "string" ? { issued: serial } : {}),
    request: requestId,
    // The header may hold any text: only the form of a run's id is recorded.
    ...(typeof run === "string" && runId.test(run) ? { run } : {}),
    from: plainAddress(request.socket.remoteAddress),
    status,
    outcome: code ?? (typeof result === "string" ? result : "done"),
  };
}

/** A log that writes each entry into `log` and into the tamper-evident trail (S-27). */
export function auditLog(log: Log, trail: (fields: LogFields) => void): Log {
  const both =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}): void => {
      log[level](message, fields);
      trail(fields);
    };
  return { info: both("info"), warn: both("warn"), error: both("error") };
}
