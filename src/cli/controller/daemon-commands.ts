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

/** `kcore controller …`; the unit kcore-controller on a node runs `serve`. */
export function controllerCommand(): Command {
  const controller = new Command("controller").description(
    "Back up, restore, remove and repair controllers, and run their daemon",
  );
  addProjectOption(controller.command("serve"))
    .description("Serve the cluster's API until stopped")
    .option("--config <file>", "the controller's configuration", "/etc/kcore/controller.yaml")
    .addHelpText("after", "\nExamples:\n  kcore controller serve\n  kcore controller serve --config ./controller.yaml")
    .action((flags: DaemonFlags) => serveController(daemonOf("kcore-controller", flags)));
  addControllerChanges(controller);
  return controller;
}

/** `kcore agent run`, which the unit kcore-node-agent runs on a node. */
export function agentCommand(): Command {
  const agent = new Command("agent").description("The agent's commands, to run on a node itself");
  addProjectOption(agent.command("run"))
    .description("Register this machine with the controllers and send heartbeats")
    .option("--config <file>", "the agent's configuration", "/etc/kcore/node-agent.yaml")
    .addHelpText("after", "\nExamples:\n  kcore agent run\n  kcore agent run --config ./node-agent.yaml")
    .action((flags: DaemonFlags) => runAgent(daemonOf("kcore-node-agent", flags)));
  return agent;
}

function daemonOf(unit: string, { config: configFile }: DaemonFlags): Daemon {
  return becomeDaemon({ unit, configFile, parse: parsePlainYaml, version: kcoreVersion() });
}
