import { saveMemory } from "#agent/save-memory.ts";
import { parseArgs } from "node:util";
import { createLog } from "#api/log.ts";
import type { Log } from "#api/log.ts";
import { createSupervisor } from "#api/systemd.ts";
import type { Supervisor } from "#api/systemd.ts";
import { drawProblems } from "#errors/draw.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { MaintainOptions } from "#controller/maintain.ts";
import packageJson from "../../package.json" with { type: "json" };

/** The program that the runtime on nodes starts: `controller serve --config FILE`, `agent run --config FILE`, `--version`. */
const version = packageJson.version;
const usage = `usage: kcore controller serve [--config FILE] | kcore agent run [--config FILE] | kcore --version
       kcore controller restore BACKUP | repair | join [--fresh] [HOST:PORT…]  [--config FILE]  while it is stopped`;

interface Given {
  readonly configFile: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly supervisor: Supervisor;
}

interface Daemon {
  readonly name: string;
  readonly config: string;
  readonly start: (given: Given) => Promise<void>;
}

async function commonParts(): Promise<{
  readonly parse: (text: string) => unknown;
  readonly clock: () => number;
  readonly version: string;
}> {
  const { parsePlainYaml } = await import("#engine/yaml/plain-yaml.ts");
  return { parse: (text) => parsePlainYaml(text), clock: Date.now, version };
}

/** Each is loaded when it is started: an agent carries nothing of a controller. */
const daemons: Readonly<Record<string, Daemon>> = {
  "controller serve": {
    name: "kcore-controller",
    config: "/etc/kcore/controller.yaml",
    async start({ log: _plain, ...given }) {
      const [{ serveController }, { createControllerLog }, { openFileLimit }] = await Promise.all([
        import("#controller/serve.ts"),
        import("#controller/log.ts"),
        import("./process/open-files.ts"),
      ]);
      await serveController({
        ...(await commonParts()),
        ...given,
        openFiles: openFileLimit(),
        log: createControllerLog(logOptions("kcore-controller")),
      });
    },
  },
  "agent run": {
    name: "kcore-node-agent",
    config: "/etc/kcore/node-agent.yaml",
    start: async (given) => {
      // Before anything else is loaded.
      saveMemory();
      const { runAgent } = await import("#agent/run.ts");
      await runAgent({ ...(await commonParts()), random: Math.random, ...given });
    },
  },
};

function logOptions(unit: string): Parameters<typeof createLog>[0] {
  return { write: (line) => process.stderr.write(line), clock: Date.now, base: { unit } };
}

async function main(words: readonly string[]): Promise<number> {
  if (words.length === 1 && words[0] === "--version") {
    process.stdout.write(`kcore ${version}\n`);
    return exitCodes.done;
  }
  const work = words[0] === "controller" ? maintenance[words[1] ?? ""] : undefined;
  if (work) return maintain(work, words.slice(2));
  const daemon = daemons[words.slice(0, 2).join(" ")];
  const configFile = readConfigOption(words.slice(2)) ?? daemon?.config;
  if (!daemon || configFile === undefined || configFile === "") {
    process.stderr.write(`${usage}\n`);
    return exitCodes.usage;
  }
  const log = createLog(logOptions(daemon.name));
  const stop = new AbortController();
  // systemd sends TERM to stop a service; INT comes from a terminal.
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stop.abort());
  // Certificates are looked at regularly anyway; a HUP must not end the process.
  process.on("SIGHUP", () => undefined);
  try {
    const supervisor = createSupervisor({
      environment: process.env,
      pid: process.pid,
      onProblem: (reason) => log.warn("systemd cannot be told of this service", { reason }),
    });
    await daemon.start({ configFile, log, signal: stop.signal, supervisor });
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

type Work = (
  operands: readonly string[],
  options: MaintainOptions & { readonly fresh: boolean },
) => Promise<readonly string[]>;

/** What is done on a controller's machine while the controller is stopped. */
const maintenance: Readonly<Record<string, Work>> = {
  restore: async ([file = ""], options) => (await import("#controller/maintain.ts")).restoreHere(file, options),
  repair: async (_, options) => (await import("#controller/maintain.ts")).repairHere(options),
  join: async (endpoints, options) => (await import("#controller/maintain.ts")).joinHere(endpoints, options),
};

async function maintain(work: Work, words: readonly string[]): Promise<number> {
  const options = { config: { type: "string" }, fresh: { type: "boolean" } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
    const { config: configFile = "/etc/kcore/controller.yaml", fresh = false } = values;
    const { parsePlainYaml, printYaml } = await import("#engine/yaml/plain-yaml.ts");
    const lines = await work(positionals, {
      configFile,
      now: Date.now(),
      fresh,
      yaml: { parse: parsePlainYaml, print: printYaml },
    });
    process.stdout.write(lines.map((line) => `${line}\n`).join(""));
    return exitCodes.done;
  } catch (error) {
    const isUsage = error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
    if (!isUsage && !(error instanceof KcoreError)) throw error;
    process.stderr.write(
      isUsage ? `${error.message}\n${usage}\n` : `${drawProblems((error as KcoreError).problems)}\n`,
    );
    return isUsage ? exitCodes.usage : (error as KcoreError).exitCode;
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
