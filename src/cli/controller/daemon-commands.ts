import { Command } from "commander";
import { runAgent } from "#agent/run.ts";
import { becomeDaemon, type Daemon } from "#api/daemon.ts";
import { serveController } from "#controller/serve.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { addControllerChanges } from "./change-commands.ts";
import { addProjectOption } from "../options.ts";
import { kcoreVersion } from "../process/version.ts";

interface DaemonFlags {
  readonly config: string;
}

/** `kcore controller serve`, as the unit kcore-controller does it on a node. */
export function controllerCommand(): Command {
  const controller = new Command("controller").description("The controller's commands, to run on a node itself");
  addProjectOption(controller.command("serve"))
    .description("Serve the cluster's API until stopped")
    .option("--config <file>", "its configuration", "/etc/kcore/controller.yaml")
    .addHelpText("after", "\nExamples:\n  kcore controller serve\n  kcore controller serve --config ./controller.yaml")
    .action((flags: DaemonFlags) => serveController(daemonOf("kcore-controller", flags)));
  addControllerChanges(controller);
  return controller;
}

/** `kcore agent run`, as the unit kcore-node-agent does it on a node. */
export function agentCommand(): Command {
  const agent = new Command("agent").description("The agent's commands, to run on a node itself");
  addProjectOption(agent.command("run"))
    .description("Register this machine with the controllers and send heartbeats")
    .option("--config <file>", "its configuration", "/etc/kcore/node-agent.yaml")
    .addHelpText("after", "\nExamples:\n  kcore agent run\n  kcore agent run --config ./node-agent.yaml")
    .action((flags: DaemonFlags) => runAgent(daemonOf("kcore-node-agent", flags)));
  return agent;
}

function daemonOf(unit: string, { config: configFile }: DaemonFlags): Daemon {
  return becomeDaemon({ unit, configFile, parse: parsePlainYaml, version: kcoreVersion() });
}
