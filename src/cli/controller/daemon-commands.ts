import { Command } from "commander";
import { createLog } from "#api/log.ts";
import { createSupervisor } from "#api/systemd.ts";
import { runAgent } from "#agent/run.ts";
import { serveController } from "#controller/serve.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { addControllerChanges } from "./controller-changes.ts";
import { addProjectOption } from "../options.ts";
import { kcoreVersion } from "../version.ts";

interface DaemonFlags {
  readonly config: string;
}

/** `kcore controller serve`, as the unit kcore-controller does it on a node. */
export function controllerCommand(): Command {
  const controller = new Command("controller").description("The cluster's controller");
  addProjectOption(controller.command("serve"))
    .description("Serve the cluster's API until stopped")
    .option("--config <file>", "its configuration", "/etc/kcore/controller.yaml")
    .addHelpText("after", "\nExamples:\n  kcore controller serve\n  kcore controller serve --config ./controller.yaml")
    .action(({ config }: DaemonFlags) =>
      serveController({ ...parts("kcore-controller"), configFile: config, clock: Date.now, version: kcoreVersion() }),
    );
  addControllerChanges(controller);
  return controller;
}

/** `kcore agent run`, as the unit kcore-node-agent does it on a node. */
export function agentCommand(): Command {
  const agent = new Command("agent").description("The agent of a deployed node");
  addProjectOption(agent.command("run"))
    .description("Register this machine at the controllers and keep telling that it lives")
    .option("--config <file>", "its configuration", "/etc/kcore/node-agent.yaml")
    .addHelpText("after", "\nExamples:\n  kcore agent run\n  kcore agent run --config ./node-agent.yaml")
    .action(({ config }: DaemonFlags) =>
      runAgent({
        ...parts("kcore-node-agent"),
        configFile: config,
        clock: Date.now,
        random: Math.random,
        version: kcoreVersion(),
      }),
    );
  return agent;
}

function parts(unit: string) {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  const log = createLog({ write: (line) => process.stderr.write(line), clock: Date.now, base: { unit } });
  const onProblem = (reason: string) => log.warn("systemd cannot be told of this service", { reason });
  const supervisor = createSupervisor({ environment: process.env, pid: process.pid, onProblem });
  return { log, signal: stop.signal, supervisor, parse: (text: string): unknown => parsePlainYaml(text) };
}
