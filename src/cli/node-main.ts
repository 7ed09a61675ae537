import { runAgent } from "#agent/run.ts";
import { createLog } from "#api/log.ts";
import type { Log } from "#api/log.ts";
import { serveController } from "#controller/serve.ts";
import { parsePlainYaml } from "#engine/source/plain.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import packageJson from "../../package.json" with { type: "json" };

/** The program that the runtime on nodes starts: `controller serve --config FILE`, `agent run --config FILE`, `--version`. */
const version = packageJson.version;
const usage = "usage: kcore controller serve [--config FILE] | kcore agent run [--config FILE] | kcore --version";

interface Daemon {
  readonly name: string;
  readonly config: string;
  readonly start: (configFile: string, log: Log, signal: AbortSignal) => Promise<void>;
}

const parts = { parse: (text: string): unknown => parsePlainYaml(text), clock: Date.now, version } as const;

const daemons: Readonly<Record<string, Daemon>> = {
  "controller serve": {
    name: "kcore-controller",
    config: "/etc/kcore/controller.yaml",
    start: (configFile, log, signal) => serveController({ ...parts, configFile, log, signal }),
  },
  "agent run": {
    name: "kcore-node-agent",
    config: "/etc/kcore/node-agent.yaml",
    start: (configFile, log, signal) => runAgent({ ...parts, random: Math.random, configFile, log, signal }),
  },
};

async function main(words: readonly string[]): Promise<number> {
  if (words.length === 1 && words[0] === "--version") {
    process.stdout.write(`kcore ${version}\n`);
    return exitCodes.done;
  }
  const daemon = daemons[words.slice(0, 2).join(" ")];
  const configFile = readConfigOption(words.slice(2)) ?? daemon?.config;
  if (!daemon || configFile === undefined || configFile === "") {
    process.stderr.write(`${usage}\n`);
    return exitCodes.usage;
  }
  const log = createLog({ write: (line) => process.stderr.write(line), clock: Date.now, base: { unit: daemon.name } });
  const stop = new AbortController();
  // systemd sends TERM to stop a service; INT comes from a terminal.
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stop.abort());
  // Certificates are looked at regularly anyway; a HUP must not end the process.
  process.on("SIGHUP", () => undefined);
  try {
    await daemon.start(configFile, log, stop.signal);
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof KcoreError)) {
      log.error("a bug ended this process", { error: error instanceof Error ? error.stack : String(error) });
      return exitCodes.bug;
    }
    for (const { code, message, hint } of error.problems) {
      log.error(message, { code, ...(hint === undefined ? {} : { hint }) });
    }
    return error.exitCode;
  }
}

/** The FILE of `--config FILE` or `--config=FILE`; undefined without it; empty when something else stands there. */
function readConfigOption(words: readonly string[]): string | undefined {
  const [first, second] = words;
  if (first === undefined) return undefined;
  if (first === "--config" && second !== undefined && words.length === 2) return second;
  return first.startsWith("--config=") && words.length === 1 ? first.slice("--config=".length) : "";
}

process.exitCode = await main(process.argv.slice(2));
