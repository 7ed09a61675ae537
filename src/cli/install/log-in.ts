import { appendFile, chmod } from "node:fs/promises";
import type { Transport } from "#engine/transport/connect.ts";
import { hostKeyTrust, parseHostKey, type HostKey } from "#engine/transport/host-key.ts";
import type { Host } from "#engine/transport/host.ts";
import { LoginRefused } from "#engine/transport/host-problems.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { lookUpKnownHost, readKnownHosts } from "#engine/transport/known-hosts.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import type { MachineFlags } from "../options.ts";
import { leave, passwordOf } from "../terminal/ask-operator.ts";
import { knownHostsFiles, ownKnownHosts, machineEndpoint, type Machine } from "../roster/find-machine.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";

/**
 * Connects to a machine whose host key was verified. If the machine accepts no key of the operator's and a password
 * was offered, one login by password installs a key; later logins use keys alone. @throws KcoreError QUESTION_UNANSWERED,
 * FILE_UNREADABLE, FILE_UNTRUSTED, KEY_NOT_ADMITTED, and those of a connection
 */
export async function logIn(
  machine: Machine,
  transport: Transport,
  key: HostKey,
  { askPassword, passwordFile }: Pick<MachineFlags, "askPassword" | "passwordFile">,
): Promise<Host> {
  const { name, user } = machine.entry;
  const endpoint = { ...machineEndpoint(machine), hostKeys: [`${key.type} ${key.key}`] };
  try {
    return await transport.connect(endpoint);
  } catch (error) {
    // A password does not help against a jump host's refusal or two factors, nor an operator without a key.
    if (!(error instanceof LoginRefused) || error.host !== endpoint.name) throw error;
    if (passwordFile === undefined && askPassword !== true) throw withAdvice(error);
  }
  const password = await passwordOf(`${user} of ${name}`, passwordFile);
  const { label } = await transport.admitKey(endpoint, { password });
  process.stderr.write(`${name} lets ${user} in with ${label} from now on: the password was used once\n`);
  return transport.connect(endpoint);
}

function withAdvice(error: KcoreError): KcoreError {
  const advice = "--ask-password installs your public key on the machine";
  return new KcoreError(
    error.problems.map((problem) => ({
      ...problem,
      hint: problem.hint === undefined ? advice : `${problem.hint} ${advice}`,
    })),
    { cause: error, exitCode: error.exitCode },
  );
}

/** The verified key of a machine, and whether the roster holds it already. */
interface VerifiedKey {
  readonly key: HostKey;
  readonly isInRoster: boolean;
}

/**
 * The machine's host key, verified: pinned in the roster, known from a known_hosts file, or confirmed now. `-k` never
 * leaves verification out (S-1): it shows a new key and asks. @throws KcoreError HOST_KEY_CHANGED, HOST_KEY_REVOKED,
 * HOST_KEY_UNKNOWN, QUESTION_UNANSWERED, CONFIRM_DENIED, and those of a connection
 */
export async function verifyHostKey(
  machine: Machine,
  transport: Transport,
  { insecure = false, hostKey }: Pick<MachineFlags, "insecure" | "hostKey">,
): Promise<VerifiedKey> {
  const { entry } = machine;
  const key = await transport.scanHostKey(machineEndpoint(machine));
  const shown = `${entry.name} presents the host key ${key.type} ${key.fingerprint}`;
  if (hostKey !== undefined && hostKey !== key.fingerprint)
    throw keyChanged(
      `${shown}, not ${hostKey}`,
      "compare with: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub there",
    );
  const pinned = entry.hostKeys.flatMap((text) => parseHostKey(text) ?? []);
  const files = await Promise.all(knownHostsFiles().map(readKnownHosts));
  const found = lookUpKnownHost(files, entry.address, entry.port);
  const trusted = pinned.length > 0 ? { ...found, keys: pinned, source: "the roster" } : found;
  switch (hostKeyTrust(key, trusted)) {
    case "trusted":
      return { key, isInRoster: pinned.length > 0 };
    case "revoked":
      throw new KcoreError({ code: "HOST_KEY_REVOKED", message: `${shown}, which is revoked` });
    case "changed":
      throw keyChanged(
        `${shown}, but ${trusted.source} has another one`,
        machine.isInRoster
          ? `if it was reinstalled: kcore roster trust --replace ${entry.name}; else find out why`
          : `if it was reinstalled: ssh-keygen -R ${entry.address} -f ${trusted.source}; else find out why`,
      );
    case "unknown":
      await confirmKey(shown, insecure, hostKey);
      return { key, isInRoster: false };
  }
}

function keyChanged(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "HOST_KEY_CHANGED", message, hint }, { exitCode: exitCodes.unreachable });
}

async function confirmKey(shown: string, insecure: boolean, hostKey: string | undefined): Promise<void> {
  if (hostKey !== undefined) return;
  const fingerprintHint = "--host-key SHA256:… with the fingerprint that the machine's console shows";
  if (!insecure)
    throw new KcoreError({ code: "HOST_KEY_UNKNOWN", message: shown, hint: `-k asks about it, or ${fingerprintHint}` });
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: `${shown}, and no operator is there to compare it`,
      hint: fingerprintHint,
    });
  process.stderr.write(`${shown}\n`);
  const answer = await promptLine({
    text: "Is this the machine's key? [yes/no]",
    secret: false,
    signal: new AbortController().signal,
    onInterrupt: leave,
  });
  if (answer?.trim().toLowerCase() === "yes") return;
  throw new KcoreError(
    { code: "CONFIRM_DENIED", message: "the host key was not accepted" },
    { exitCode: exitCodes.failed },
  );
}

/** Pins the key of a machine without a roster entry in kcore's known_hosts, so that the operator is asked only once. */
export async function pinOutsideRoster({ entry }: Machine, { key }: VerifiedKey): Promise<void> {
  const file = ownKnownHosts();
  const files = await Promise.all(knownHostsFiles().map(readKnownHosts));
  if (lookUpKnownHost(files, entry.address, entry.port).keys.some((known) => known.key === key.key)) return;
  const host = entry.port === 22 ? entry.address : `[${entry.address}]:${entry.port}`;
  await ensurePrivateFolder(kcoreHome());
  await appendFile(file, `${host} ${key.type} ${key.key}\n`, { mode: 0o600 });
  await chmod(file, 0o600);
}
