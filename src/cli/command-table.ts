import type { Command } from "commander";

/** A command as `kcore help` lists it; `load` imports its file. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: (words?: readonly string[]) => Promise<Command>;
}

/** Every command, in the order of the help. */
export const commandTable: readonly CommandEntry[] = [
  entry("init", "Create a new project", async () => (await import("./project/init-command.ts")).initCommand()),
  entry("lab", "Throwaway test machines on this computer", async () =>
    (await import("./lab/lab-command.ts")).labCommand(),
  ),
  entry("modules", "List the modules a step can use", async () =>
    (await import("./modules/modules-command.ts")).modulesCommand(),
  ),
  entry("pack", "States, templates and modules that projects share", async () =>
    (await import("./pack/pack-command.ts")).packCommand(),
  ),
  entry("schema", "JSON Schema of the files that you write, for editors", async () =>
    (await import("./schema/schema-command.ts")).schemaCommand(),
  ),
  entry("roster", "The machines and how to reach them", async () =>
    (await import("./roster/roster-command.ts")).rosterCommand(),
  ),
  entry("secrets", "Secrets, kept encrypted in git", async () =>
    (await import("./secrets/secrets-command.ts")).secretsCommand(),
  ),
  entry("check", "Check a project for mistakes, without a connection", async () =>
    (await import("./check/check-command.ts")).checkCommand(),
  ),
  entry("ping", "Connect to nodes and show how long it takes", async () =>
    (await import("./adhoc/ping-command.ts")).pingCommand(),
  ),
  entry("facts", "Gather facts about nodes: hardware, system, addresses", async () =>
    (await import("./adhoc/facts-command.ts")).factsCommand(),
  ),
  entry("exec", "Run one command on nodes", async () => (await import("./adhoc/exec-command.ts")).execCommand()),
  entry("ssh", "Log in to a node, the roster's way", async () => (await import("./adhoc/ssh-command.ts")).sshCommand()),
  entry("cp", "Copy files to and from nodes", async () => (await import("./reach/copy-command.ts")).copyCommand()),
  entry("logs", "The journals of nodes in one stream", async () =>
    (await import("./reach/logs-command.ts")).logsCommand(),
  ),
  entry("state", "List, show and apply states", async () => (await import("./state/state-command.ts")).stateCommand()),
  entry("orchestrate", "Run an orchestration over nodes", async (words) =>
    (await import("./orchestrate/orchestrate-command.ts")).orchestrateCommand(words),
  ),
  entry("drift", "Differences between nodes and project, by node and step", async () =>
    (await import("./drift/drift-command.ts")).driftCommand(),
  ),
  entry("reconcile", "Let the nodes follow a branch: fetch, verify, compare, apply", async () =>
    (await import("./reconcile/reconcile-command.ts")).reconcileCommand(),
  ),
  entry("validate", "Check machines and members: every check, nothing changed", async () =>
    (await import("./validate/validate-command.ts")).validateCommand(),
  ),
  entry("doctor", "Find the cause of trouble, and the command that mends it", async () =>
    (await import("./validate/doctor-command.ts")).doctorCommand(),
  ),
  entry("runs", "Recorded and living runs", async () => (await import("./runs/runs-command.ts")).runsCommand()),
  entry("worker", "Take nodes of runs from the project's queue", async () =>
    (await import("./queue/worker-command.ts")).workerCommand(),
  ),
  entry("queue", "This machine's part in a queue of runs", async () =>
    (await import("./queue/queue-command.ts")).queueCommand(),
  ),
  entry("web", "Runs and the fleet in a browser, live", async () =>
    (await import("./web/web-command.ts")).webCommand(),
  ),
  entry("disk", "Recovery keys and saved partition tables of nodes' disks", async () =>
    (await import("./disk/disk-command.ts")).diskCommand(),
  ),
  entry("audit", "The tamper-evident audit log of runs and changes", async () =>
    (await import("./audit/audit-command.ts")).auditCommand(),
  ),
  entry("create", "Create a cluster, or records of VMs, networks and images", async () =>
    (await import("./vms/record-commands.ts")).addRecordCreation(
      (await import("./cluster/create-command.ts")).createCommand(),
    ),
  ),
  entry("cluster", "Back up and restore a cluster: state and keys", async () =>
    (await import("./cluster/cluster-command.ts")).clusterCommand(),
  ),
  entry("config", "Contexts: the clusters this user knows", async () =>
    (await import("./cluster/config-command.ts")).configCommand(),
  ),
  entry("get", "List nodes, controllers, certificates and conflicts of the cluster", async () =>
    (await import("./get/get-command.ts")).getCommand(),
  ),
  entry("top", "Watch the whole cluster live", async () => (await import("./top/top-command.ts")).topCommand()),
  entry("health", "Check the controllers' health", async () =>
    (await import("./cluster/health-command.ts")).healthCommand(),
  ),
  entry("apply", "Apply manifests: create or update what they describe", async () =>
    (await import("./apply/apply-command.ts")).applyCommand(),
  ),
  entry("diff", "Show what kcore apply would change", async () =>
    (await import("./apply/apply-command.ts")).diffCommand(),
  ),
  entry("describe", "Show everything about one node, controller …", async () =>
    (await import("./get/describe-command.ts")).describeCommand(),
  ),
  entry("set", "Change a recorded VM", async () => (await import("./vms/record-commands.ts")).setCommand()),
  entry("delete", "Delete records of VMs, networks and images", async () =>
    (await import("./vms/record-commands.ts")).deleteCommand(),
  ),
  entry("node", "The cluster's nodes: approve, label, drain, remove", async () =>
    (await import("./node/node-command.ts")).nodeCommand(),
  ),
  entry("conflict", "Resolve concurrent edits of the same thing", async () =>
    (await import("./cluster/conflict-command.ts")).conflictCommand(),
  ),
  entry("update", "Roll a new version out over the cluster", async () =>
    (await import("./update/update-command.ts")).updateCommand(),
  ),
  entry("rotate", "Renew keys and certificates while the cluster runs", async () =>
    (await import("./certificates/rotate-command.ts")).rotateCommand(),
  ),
  entry("revoke", "Revoke certificates", async () =>
    (await import("./certificates/revoke-command.ts")).revokeCommand(),
  ),
  entry("controller", "Back up, restore, remove and repair controllers, and run their daemon", async () =>
    (await import("./controller/daemon-commands.ts")).controllerCommand(),
  ),
  entry("agent", "The agent's commands, to run on a node itself", async () =>
    (await import("./controller/daemon-commands.ts")).agentCommand(),
  ),
  entry("explain", "Explain an error code, and what to do", async () =>
    (await import("./explain/explain-command.ts")).explainCommand(),
  ),
  entry("man", "Manual pages", async () => (await import("./man/man-command.ts")).manCommand()),
  entry("completion", "Let your shell complete kcore's words", async () =>
    (await import("./completion/completion-command.ts")).completionCommand(),
  ),
];

function entry(name: string, summary: string, load: CommandEntry["load"]): CommandEntry {
  return { name, summary, load };
}
