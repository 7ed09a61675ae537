import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { becomeDaemon, type Daemon } from "#api/daemon.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { runTasks, tasksAsLines } from "#base/tasks.ts";
import { drawProblems } from "#errors/draw.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { RestoreOptions } from "#controller/restore-state.ts";
import packageJson from "../../package.json" with { type: "json" };

// The program of the runtime on nodes: daemons, checks of their configurations, and maintenance of a stopped controller.
const version = packageJson.version;
const usage = `usage: kcore controller serve [--config FILE] | kcore agent run [--config FILE] | kcore updater run [--config FILE] | kcore --version
       kcore controller check --config FILE | kcore agent check --config FILE
       kcore controller found  [--config FILE]  while it is stopped
       kcore controller restore BACKUP | repair  [--alone --cluster NAME] [-o table|json] [--config FILE]  while it is stopped
       kcore controller join [--fresh] [HOST:PORT…]  [--config FILE]  while it is stopped`;

interface NodeProgram {
  readonly unit: string;
  readonly config: string;
  readonly start: (daemon: Daemon) => Promise<void>;
}

/** Each program is loaded when it starts: an agent holds nothing of a controller in memory. */
const programs: Readonly<Record<string, NodeProgram>> = {
  "controller serve": {
    unit: "kcore-controller",
    config: "/etc/kcore/controller.yaml",
    async start(daemon) {
      const [{ serveController }, { limitHeapGrowth }, { openFileLimit }] = await Promise.all([
        import("#controller/serve.ts"),
        import("#controller/heap.ts"),
        import("./process/open-files.ts"),
      ]);
      limitHeapGrowth();
      await serveController({ ...daemon, openFiles: openFileLimit() });
    },
  },
  "agent run": {
    unit: "kcore-node-agent",
    config: "/etc/kcore/node-agent.yaml",
    async start(daemon) {
      const { runAgent } = await import("#agent/run.ts");
      await runAgent(daemon);
    },
  },
  // The updater reads the configuration of its node's agent.
  "updater run": {
    unit: "kcore-updater",
    config: "/etc/kcore/node-agent.yaml",
    async start(daemon) {
      const [{ runUpdater }, { AgentConfig, controllersOf }, { readDaemonConfig }] = await Promise.all([
        import("#updater/run.ts"),
        import("#agent/agent-config.ts"),
        import("#api/daemon-config.ts"),
      ]);
      const config = await readDaemonConfig(daemon, AgentConfig);
      const { stateDir, tls, hostname, dcId: dc } = config;
      await runUpdater({
        ...daemon,
        tls,
        stateDir,
        dc,
        controllers: controllersOf(config),
        ...omitUndefined({ hostname }),
      });
    },
  },
};

/**
 * Makes an agent's process small instead of fast, as an agent computes next to nothing. With the unit's NODE_OPTIONS (no
 * compiler, a young generation of 1 MiB) it stays at 67 MB resident instead of 87 MB.
 */
function reduceMemory(): void {
  for (const flag of ["--optimize-for-size", "--no-opt", "--no-maglev", "--no-sparkplug"]) setFlagsFromString(flag);
}

const options = {
  config: { type: "string" },
  fresh: { type: "boolean" },
  alone: { type: "boolean" },
  cluster: { type: "string" },
  output: { type: "string", short: "o" },
} as const;

async function main(words: readonly string[]): Promise<number> {
  if (words.length === 1 && words[0] === "--version") {
    process.stdout.write(`kcore ${version}\n`);
    return exitCodes.done;
  }
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
    const { config, fresh = false, alone = false, output = "table", cluster } = values;
    const [first = "", second = "", ...operands] = positionals;
    const work = first === "controller" ? maintenance[second] : undefined;
    if (work && (output === "table" || output === "json")) {
      const { parsePlainYaml, printYaml } = await import("#engine/yaml/plain-yaml.ts");
      const lines = await work(operands, {
        configFile: config ?? "/etc/kcore/controller.yaml",
        now: Date.now(),
        fresh,
        alone,
        output,
        tasks: output === "json" ? runTasks : tasksAsLines((line) => void process.stderr.write(`${line}\n`)),
        ...omitUndefined({ cluster }),
        yaml: { parse: parsePlainYaml, print: printYaml },
      });
      process.stdout.write(lines.map((line) => `${line}\n`).join(""));
      return exitCodes.done;
    }
    const hasMore = operands.length > 0 || Object.keys(values).some((name) => name !== "config") || config === "";
    const program = programs[`${first} ${second}`];
    const hasConfig = first === "agent" || first === "controller";
    if (!hasMore && hasConfig && second === "check" && config !== undefined) return await checkConfig(first, config);
    if (!hasMore && program) return await runDaemon(program, config ?? program.config);
    process.stderr.write(work ? `-o takes table or json\n${usage}\n` : `${usage}\n`);
    return exitCodes.usage;
  } catch (error) {
    if (error instanceof KcoreError) {
      process.stderr.write(`${drawProblems(error.problems)}\n`);
      return error.exitCode;
    }
    const isUsage = error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
    if (!isUsage) throw error;
    process.stderr.write(`${error.message}\n${usage}\n`);
    return exitCodes.usage;
  }
}

async function runDaemon({ unit, start }: NodeProgram, configFile: string): Promise<number> {
  // V8 takes the flags only for code that is loaded later.
  if (unit === "kcore-node-agent") reduceMemory();
  const { parsePlainYaml } = await import("#engine/yaml/plain-yaml.ts");
  const daemon = becomeDaemon({ unit, configFile, parse: parsePlainYaml, version });
  // SIGHUP must not end a daemon; certificates are read again regularly without it.
  process.on("SIGHUP", () => undefined);
  const { log } = daemon;
  try {
    await start(daemon);
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof KcoreError)) {
      log.error("a bug ended this process", { error: error instanceof Error ? error.stack : String(error) });
      return exitCodes.bug;
    }
    for (const { code, message, hint } of error.problems) log.error(message, { code, ...omitUndefined({ hint }) });
    return error.exitCode;
  }
}

/**
 * Reads a daemon's configuration and returns 0: a deployment checks a new file so before it replaces the old one.
 * @throws KcoreError for mistakes in it
 */
async function checkConfig(daemon: "agent" | "controller", configFile: string): Promise<number> {
  const [{ AgentConfig }, { ControllerConfig }, { readDaemonConfig }, { parsePlainYaml }] = await Promise.all([
    import("#agent/agent-config.ts"),
    import("#controller/controller-config.ts"),
    import("#api/daemon-config.ts"),
    import("#engine/yaml/plain-yaml.ts"),
  ]);
  const place = { configFile, parse: parsePlainYaml };
  await readDaemonConfig(place, daemon === "agent" ? AgentConfig : ControllerConfig);
  return exitCodes.done;
}

type Maintenance = (
  operands: readonly string[],
  options: RestoreOptions & { readonly fresh: boolean },
) => Promise<readonly string[]>;

/** The work on a controller's machine while the controller is stopped. */
const maintenance: Readonly<Record<string, Maintenance>> = {
  found: async (_, options) => (await import("#controller/found-or-join.ts")).foundHere(options),
  restore: async ([file = ""], options) => (await import("#controller/restore-state.ts")).restoreHere(file, options),
  repair: async (_, options) => (await import("#controller/restore-state.ts")).repairHere(options),
  join: async (endpoints, options) => (await import("#controller/found-or-join.ts")).joinHere(endpoints, options),
};

process.exitCode = await main(process.argv.slice(2));
