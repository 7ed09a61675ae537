import { homedir } from "node:os";
import { Command, Option } from "commander";
import { setNodeFields } from "#engine/roster/edit.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import { parseHostKey, type HostKey } from "#engine/transport/host-key.ts";
import { drawProblems } from "#errors/draw.ts";
import { exitCodes, KcoreError, usageError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { isConfirmed } from "../terminal/confirm.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
import { wayTo } from "../install/find-machine.ts";
import { findProject } from "../project/find-project.ts";
import { keyDeployment, readPublicKey } from "./deploy-key.ts";
import { editRosterFile, onlyFile } from "./edit-roster-file.ts";
import { ownRoster } from "./own-roster.ts";

interface TrustFlags extends CommonFlags {
  readonly replace?: boolean;
  readonly yes?: boolean;
  readonly hostKey?: string;
  /** The former name of `--host-key`, which still works. */
  readonly fingerprint?: string;
  readonly deployKey?: string;
  readonly passwordFile?: string;
}

/** `kcore roster trust`. */
export function trustCommand(): Command {
  return addProjectOption(new Command("trust").argument("<target>", "a node, or several"))
    .description("Show the host key that a node presents and pin it in the roster; put a public key there")
    .addHelpText(
      "after",
      `
Examples:
  kcore roster trust n4
  kcore roster trust n4 --host-key SHA256:…
  kcore roster trust 'role:worker' --deploy-key ~/.ssh/fleet.pub`,
    )
    .option("--replace", "also where another key is pinned, as after a reinstall")
    .option("--yes", "pin without asking: only on a network you trust")
    .option("--host-key <sha256>", "pin without asking if the key has this fingerprint")
    .addOption(new Option("--fingerprint <sha256>").hideHelp())
    .option(
      "--deploy-key <file.pub>",
      "then put this public key there; a password is asked for once where no key of yours is let in",
    )
    .option("--password-file <file>", "that password: the first line of a file that only its owner may read")
    .action(trust);
}

async function trust(target: string, { project, deployKey, passwordFile, ...flags }: TrustFlags): Promise<void> {
  const key = deployKey === undefined ? undefined : readPublicKey(deployKey);
  if (passwordFile !== undefined && key === undefined) throw usageError("--password-file is for --deploy-key FILE.pub");
  const root = findProject(project);
  const roster = ownRoster(root);
  const agentSocket = process.env["SSH_AUTH_SOCK"];
  const transport = createTransport({ home: homedir(), ...omitUndefined({ agentSocket }) });
  const nodes = matchTargets(target, roster).filter((node) => node.transport === "ssh");
  const users = nodes.map(({ user, name }) => `${user} of ${name}`);
  const put = key && keyDeployment(transport, { key, users, passwordFile });
  try {
    for (const node of nodes) {
      const endpoint = wayTo({ entry: node, roster });
      const found = await transport.scanHostKey(endpoint);
      const isPinned = await pin(root, roster, node, found, flags);
      if (isPinned && put) await deploy(put, node, { ...endpoint, hostKeys: [`${found.type} ${found.key}`] });
    }
  } finally {
    await transport.close();
  }
}

/** A node that does not take the key is reported, and the others continue. */
async function deploy(
  put: ReturnType<typeof keyDeployment>,
  { name, user }: NodeEntry,
  endpoint: Parameters<Transport["connect"]>[0],
): Promise<void> {
  try {
    const isNew = await put(endpoint);
    process.stdout.write(
      isNew ? `  ${name} lets ${user} in with the key from now on\n` : `  the key is on ${name} already\n`,
    );
  } catch (error) {
    if (!(error instanceof KcoreError) || error.problems.some(({ code }) => code === "QUESTION_UNANSWERED"))
      throw error;
    process.stderr.write(`${drawProblems(error.problems, { color: false })}\n`);
    process.exitCode = exitCodes.failed;
  }
}

/** Whether the key that was found is pinned now. */
async function pin(root: string, roster: Roster, node: NodeEntry, found: HostKey, flags: TrustFlags): Promise<boolean> {
  const pinned = node.hostKeys.map((text) => parseHostKey(text)).filter((key) => key !== undefined);
  if (pinned.some(({ key }) => key === found.key)) {
    process.stdout.write(`${node.name}  ${found.type} ${found.fingerprint}  pinned already\n`);
    return true;
  }
  if (pinned.length > 0 && !flags.replace)
    throw new KcoreError({
      code: "HOST_KEY_CHANGED",
      message: `${node.name} presents ${found.type} ${found.fingerprint}, but ${pinned.map((key) => key.fingerprint).join(", ")} is pinned`,
      hint: `if it was reinstalled: kcore roster trust --replace ${node.name}; else find out why`,
    });
  process.stdout.write(`${node.name} (${node.address})  ${found.type} ${found.fingerprint}\n`);
  for (const key of pinned) process.stdout.write(`  instead of ${key.type} ${key.fingerprint}\n`);
  if (!(await isWanted(found, flags))) {
    process.stdout.write(`  not pinned\n`);
    process.exitCode = exitCodes.failed;
    return false;
  }
  const file = roster.positions.get(node.name)?.file ?? onlyFile(root);
  await editRosterFile(root, file, (text) =>
    setNodeFields(text, node.name, { hostKeys: [`${found.type} ${found.key}`] }),
  );
  process.stdout.write(`  pinned in ${file}\n`);
  return true;
}

async function isWanted({ fingerprint: found }: HostKey, { yes = false, ...flags }: TrustFlags): Promise<boolean> {
  const given = flags.hostKey ?? flags.fingerprint;
  if (given !== undefined) return found === given;
  if (yes) return true;
  return isConfirmed("  Is this the machine's key?", {
    message: "nobody is there to compare the host key's fingerprint",
    hint: "run it in a terminal, or give --host-key SHA256:…, or --yes on a network you trust",
  });
}
