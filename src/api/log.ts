import { omitUndefined } from "#base/omit-undefined.ts";

/** Structured values of a log line; plain JSON, no secrets. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The log of controller and agent: one JSON line an event, for systemd's journal. A library would cost each agent 9 MB of memory. */
export interface Log {
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

/** Private keys in PEM, encrypted ones too: no log may hold them (S-7). */
const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;

/** Fields that are never logged, at any depth. */
const concealed = new Set(["passphrase", "password", "authorization"]);
const mayConceal = new RegExp(`"(?:${[...concealed].join("|")})":`);

function conceal(name: string, value: unknown): unknown {
  return concealed.has(name) ? "***" : value;
}

/** A log that passes whole lines to `write`. `time` is ISO 8601 in UTC, `level` one of info, warn, error. */
export function createLog({
  write,
  clock,
  base = {},
}: {
  /** `isUrgent`: the line reports an error. */
  readonly write: (line: string, isUrgent: boolean) => void;
  readonly clock: () => number;
  readonly base?: LogFields;
}): Log {
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      const line = { time: new Date(clock()).toISOString(), level, message, ...base, ...fields };
      const plain = JSON.stringify(line);
      // Fields are checked only if the text has such a name: a replacer costs more than the rest of a line.
      const text = mayConceal.test(plain) ? JSON.stringify(line, conceal) : plain;
      write(`${text.includes("PRIVATE KEY") ? text.replaceAll(privateKey, "***") : text}\n`, level === "error");
    };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}

/** An error as log fields: its message, and its code when it has one. */
export function describeError(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: String(error) };
  const code = (error as NodeJS.ErrnoException).code;
  return { error: error.message, ...omitUndefined({ code }) };
}
