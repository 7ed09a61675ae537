import { pino } from "pino";
import { maskKeys } from "#api/log.ts";
import type { Log, LogFields } from "#api/log.ts";

const censored = ["passphrase", "password", "authorization"];

/**
 * A controller's log: pino's lines of JSON with our names, `time` as ISO 8601 in UTC and `level` as a word. The agent
 * writes the same lines without pino, which costs 9 MB of memory.
 */
export function createControllerLog({
  write,
  clock,
  base = {},
}: {
  readonly write: (line: string) => void;
  readonly clock: () => number;
  readonly base?: LogFields;
}): Log {
  const logger = pino(
    {
      base,
      messageKey: "message",
      timestamp: () => `,"time":"${new Date(clock()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...censored, ...censored.map((name) => `*.${name}`)], censor: "***" },
    },
    { write: (line: string) => write(maskKeys(line)) },
  );
  const at =
    (level: "info" | "warn" | "error") =>
    (message: string, fields: LogFields = {}): void =>
      logger[level](fields, message);
  return { info: at("info"), warn: at("warn"), error: at("error") };
}
