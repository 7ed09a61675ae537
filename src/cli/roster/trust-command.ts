import { homedir } from "node:os";
import { Command } from "commander";
import { setNodeFields } from "#engine/roster/edit.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import { parseHostKey, type HostKey } from "#engine/transport/host-key.ts";
import { drawProblems } from "#errors/draw.ts";
import { exitCodes, KcoreError, usageError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { PublicKey } from "#engine/transport/admit-key.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { LoginRefused } from "#engine/transport/host-problems.ts";
import { isConfirmed, passwordOf } from "../terminal/ask-operator.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
import { machineEndpoint } from "./find-machine.ts";
import { findProject } from "../project/find-project.ts";
import { editRosterFile, onlyFile, ownRoster } from "./own-roster.ts";
import { readPublicKeyFile } from "./public-key-file.ts";
import { canPrompt } from "../terminal/prompt.ts";

interface TrustFlags extends CommonFlags {
  readonly replace?: boolean;
  readonly yes?: boolean;
  readonly hostKey?: string;
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
    .option(
      "--deploy-key <file.pub>",
      "then put this public key there; a password is asked for once where no key of yours is let in",
    )
    .option("--password-file <file>", "that password: the first line of a file that only its owner may read")
    .action(trust);
}

async function trust(target: string, { project, deployKey, passwordFile, ...flags }: TrustFlags): Promise<void> {
  const key = deployKey === undefined ? undefined : readPublicKeyFile(deployKey);
  if (passwordFile !== undefined && key === undefined) throw usageError("--password-file is for --deploy-key FILE.pub");
  const root = findProject(project);
  const roster = ownRoster(root);
  const agentSocket = process.env["SSH_AUTH_SOCK"];
  const transport = createTransport({ home: homedir(), ...omitUndefined({ agentSocket }) });
  const nodes = matchTargets(target, roster).filter((node) => node.transport === "ssh");
  const users = nodes.map(({ user, name }) => `${user} of ${name}`);
  const deployTo = key && keyDeployment(transport, { key, users, passwordFile });
  try {
    for (const node of nodes) {
      const endpoint = machineEndpoint({ entry: node, roster });
      const found = await transport.scanHostKey(endpoint);
      const isPinned = await pin(root, roster, node, found, flags);
      if (isPinned && deployTo)
        await reportDeploy(deployTo, node, { ...endpoint, hostKeys: [`${found.type} ${found.key}`] });
    }
  } finally {
    await transport.close();
  }
}

/** Deploys the key and reports the result; a node that does not take the key must not stop the others. */
async function reportDeploy(
  deployTo: ReturnType<typeof keyDeployment>,
  { name, user }: NodeEntry,
  endpoint: Parameters<Transport["connect"]>[0],
): Promise<void> {
  try {
    const isNew = await deployTo(endpoint);
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

/**
 * Pins the found key unless the operator refuses; returns whether it is pinned now. @throws KcoreError HOST_KEY_CHANGED
 * without `--replace`
 */
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
  if (!(await isAccepted(found, flags))) {
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

async function isAccepted(
  { fingerprint: found }: HostKey,
  { yes = false, hostKey: given }: TrustFlags,
): Promise<boolean> {
  if (given !== undefined) return found === given;
  if (yes) return true;
  return isConfirmed("  Is this the machine's key?", {
    message: "no operator is there to compare the host key's fingerprint",
    hint: "run it in a terminal, or give --host-key SHA256:…, or --yes on a network you trust",
  });
}

interface KeyDeployment {
  readonly key: PublicKey;
  /** The logins that may need the shared password, such as `root of n1`. */
  readonly users: readonly string[];
  readonly passwordFile: string | undefined;
}

/**
 * Returns a function that puts the key on a node whose host key is pinned, and says whether it is new there. The first node
 * that needs a password asks for it, and all others use it. @throws KcoreError as `Transport.admitKey`
 */
function keyDeployment(
  transport: Transport,
  { key, users, passwordFile }: KeyDeployment,
): (endpoint: Endpoint) => Promise<boolean> {
  const admit = async (endpoint: Endpoint, password?: string): Promise<boolean> =>
    (await transport.admitKey(endpoint, { key, ...omitUndefined({ password }) })).isNew;
  const [first = "", ...others] = users;
  const more = others.length > 3 ? ` and ${others.length - 3} more` : "";
  const whom = others.length === 0 ? first : `${first} and of ${others.slice(0, 3).join(", ")}${more}`;
  let shared: string | undefined;
  return async (endpoint) => {
    try {
      return await admit(endpoint);
    } catch (error) {
      if (!wantsPassword(error, endpoint)) throw error;
    }
    const known = shared !== undefined;
    shared ??= await passwordOf(whom, passwordFile);
    try {
      return await admit(endpoint, shared);
    } catch (error) {
      const isOther = known && error instanceof LoginRefused && error.host === endpoint.name;
      if (!isOther || passwordFile !== undefined || !canPrompt()) throw error;
    }
    // The shared password is wrong here, so the operator gives one for this node alone.
    return admit(endpoint, await passwordOf(`${endpoint.user} of ${endpoint.name}, which has another`, undefined));
  };
}

/** Whether the node accepts no key of the operator's; other failures, such as a jump host's refusal, have other remedies. */
function wantsPassword(error: unknown, { name }: Endpoint): boolean {
  if (error instanceof LoginRefused) return error.host === name;
  return (
    error instanceof KcoreError && error.problems.every(({ code }) => code === "AUTH_FAILED" || code.startsWith("KEY_"))
  );
}
