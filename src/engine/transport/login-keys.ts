import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import ssh2 from "ssh2";
import type { ParsedKey } from "ssh2";
import type { KcoreError } from "#errors/problem.ts";
import { threeTries } from "#errors/three-tries.ts";
import { openAgent, type AgentKey } from "./ssh-agent.ts";
import { hostFailure, messageOf } from "./host-problems.ts";
import { inspectKeyFile, type KeyFileFormat } from "./key-file.ts";
import type { Endpoint } from "./host.ts";

/** A key that may be offered to a host. */
export interface Identity {
  /** For messages: the file, or the agent and the key's comment. */
  readonly label: string;
  readonly key: ParsedKey;
  /** Signs with a key that only the agent holds; absent: `key` signs. */
  readonly agent?: AgentKey;
}

export interface IdentityOptions {
  /** The folder that has `.ssh`. */
  readonly home: string;
  /** The agent's socket; `SSH_AUTH_SOCK`. */
  readonly agentSocket?: string;
}

/** Finds the keys to offer; each file is read, and decrypted, once. */
export interface Identities {
  /**
   * The endpoint's own key file; without one the agent's keys, then the usual files in ~/.ssh.
   * @throws KcoreError KEY_UNREADABLE, KEY_UNSUPPORTED, KEY_PASSPHRASE, AGENT_UNREACHABLE, AUTH_FAILED when there is none.
   */
  find(endpoint: Endpoint): Promise<readonly Identity[]>;
}

const usualFiles = ["id_ed25519", "id_ecdsa", "id_rsa"];
type AskPassphrase = NonNullable<Endpoint["passphrase"]>;

/** Makes a finder for one run; it keeps the decrypted keys in memory. */
export function createIdentities({ home, agentSocket }: IdentityOptions): Identities {
  const files = new Map<string, Promise<Identity>>();
  let agentKeys: Promise<readonly Identity[]> | undefined;

  const fromAgent = () => {
    if (agentSocket === undefined || agentSocket === "") return Promise.resolve([]);
    agentKeys ??= listAgent(agentSocket);
    agentKeys.catch(() => (agentKeys = undefined));
    return agentKeys;
  };
  const fromFile = (file: string, ask: AskPassphrase | undefined) => {
    const path = file.startsWith("~/") ? join(home, file.slice(2)) : file;
    let found = files.get(path);
    if (!found) {
      found = loadKeyFile(path, ask, fromAgent);
      files.set(path, found);
      // A failure is not kept: the operator may still give the right passphrase.
      found.catch(() => files.delete(path));
    }
    return found;
  };

  return {
    async find({ name, user, identityFile, passphrase }) {
      if (identityFile !== undefined) return [await fromFile(identityFile, passphrase)];
      const agent = await fromAgent().catch((error: unknown) => error as KcoreError);
      const found: Identity[] = Array.isArray(agent) ? [...(agent as readonly Identity[])] : [];
      const failures: KcoreError[] = Array.isArray(agent) ? [] : [agent as KcoreError];
      for (const file of usualFiles) {
        const path = join(home, ".ssh", file);
        if (!(await isFile(path))) continue;
        try {
          // The passphrase of an encrypted file is asked for only if there is no other key to try.
          const identity = await fromFile(path, found.length > 0 ? undefined : passphrase);
          if (!found.some(({ key }) => samePublic(key, identity.key))) found.push(identity);
        } catch (error) {
          failures.push(error as KcoreError);
        }
      }
      if (found.length > 0) return found;
      if (failures[0]) throw failures[0];
      throw hostFailure({
        code: "AUTH_FAILED",
        message: `there is no key to log in to ${name} as ${user} with`,
        hint: `name one in the roster (identityFile:), start ssh-agent, or make one: ssh-keygen -t ed25519`,
      });
    },
  };
}

async function listAgent(socket: string): Promise<readonly Identity[]> {
  const keys = await openAgent(socket).list();
  return keys.map((agent) => ({ label: `agent: ${agent.key.comment || agent.key.type}`, key: agent.key, agent }));
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

function samePublic(a: ParsedKey, b: ParsedKey): boolean {
  return a.getPublicSSH().equals(b.getPublicSSH());
}

async function loadKeyFile(
  path: string,
  ask: AskPassphrase | undefined,
  fromAgent: () => Promise<readonly Identity[]>,
): Promise<Identity> {
  const text = await readKeyFile(path);
  const publicHalf = /^(\S+) (AAAA[A-Za-z0-9+/=]+)/.exec(text);
  if (publicHalf) return agentKeyFor(path, publicHalf[1] ?? "", Buffer.from(publicHalf[2] ?? "", "base64"), fromAgent);
  const format = inspectKeyFile(text);
  refuseUnsupported(path, format);
  if (!format.encrypted) return { label: path, key: parse(path, text) };

  // OpenSSH's format shows the public half: an agent that holds this very key spares the passphrase.
  const inAgent = (await fromAgent().catch(() => [])).find(
    ({ key }) => format.publicBlob !== undefined && key.getPublicSSH().equals(format.publicBlob),
  );
  if (inAgent) return { ...inAgent, label: `${path} (by the agent)` };
  const key = await threeTries(
    async (again) => {
      const passphrase = await ask?.(again);
      return passphrase === undefined ? undefined : parse(path, text, passphrase);
    },
    ["KEY_PASSPHRASE"],
  );
  if (key) return { label: path, key };
  throw hostFailure({
    code: "KEY_PASSPHRASE",
    message: `${path} is encrypted, and there is no passphrase for it`,
    hint: `add it to an agent (ssh-add ${path}), or give identityPassphrase: in the roster`,
  });
}

/** The agent's key for a public half, as ssh(1) uses it with IdentitiesOnly: the agent signs, and no other key is offered. */
async function agentKeyFor(
  path: string,
  type: string,
  blob: Buffer,
  fromAgent: () => Promise<readonly Identity[]>,
): Promise<Identity> {
  if (type.includes("-cert-"))
    throw hostFailure({
      code: "KEY_UNSUPPORTED",
      message: `${path} is a certificate, which kcore cannot log in with by itself`,
      hint: "set “transport: openssh” in the roster: the ssh program logs in by it",
    });
  const found = (await fromAgent()).find(({ key }) => key.getPublicSSH().equals(blob));
  if (found) return { ...found, label: `${path} (by the agent)` };
  throw hostFailure({
    code: "KEY_UNREADABLE",
    message: `${path} is a public key, and no agent holds its private half`,
    hint: `ssh-add ${path.replace(/\.pub$/, "")}; “ssh-add -l” lists what the agent holds`,
  });
}

async function readKeyFile(path: string): Promise<string> {
  let text: string;
  let mode: number;
  try {
    const found = await stat(path);
    // ssh(1), too, checks the mode only of files that its own user owns.
    mode = found.uid === process.getuid?.() ? found.mode & 0o777 : 0;
    text = await readFile(path, "utf8");
  } catch (error) {
    throw hostFailure(
      { code: "KEY_UNREADABLE", message: `the key file ${path} cannot be read: ${messageOf(error)}` },
      error,
    );
  }
  if ((mode & 0o077) !== 0 && text.includes("PRIVATE KEY"))
    throw hostFailure({
      code: "KEY_UNREADABLE",
      message: `the key file ${path} is open to others (mode 0${mode.toString(8)})`,
      hint: `chmod 600 ${path}`,
    });
  return text;
}

function refuseUnsupported(path: string, { format, cipher }: KeyFileFormat): void {
  const refuse = (message: string, hint: string) => {
    throw hostFailure({ code: "KEY_UNSUPPORTED", message: `the key file ${path} ${message}`, hint });
  };
  if (format === "pkcs8")
    refuse("is in PKCS#8 format, which cannot be used for SSH here", `convert it in place: ssh-keygen -p -f ${path}`);
  if (format === "unknown") refuse("holds no private key", "it should begin with -----BEGIN OPENSSH PRIVATE KEY-----");
  if (cipher !== undefined && cipher !== "none" && !/^aes(128|192|256)-(ctr|cbc)$/.test(cipher))
    refuse(`is encrypted by ${cipher}`, `encrypt it anew: ssh-keygen -p -Z aes256-ctr -f ${path}`);
}

/** Parses a private key. Decryption (bcrypt) blocks for about half a second, so {@link createIdentities} keeps the result. */
function parse(path: string, text: string, passphrase?: string): ParsedKey {
  const key = ssh2.utils.parseKey(text, passphrase) as ParsedKey | ParsedKey[] | Error;
  if (key instanceof Error) {
    if (passphrase !== undefined)
      throw hostFailure({ code: "KEY_PASSPHRASE", message: `the passphrase for ${path} is wrong` }, key);
    const message = `the key file ${path} cannot be used: ${key.message}`;
    throw hostFailure({ code: "KEY_UNSUPPORTED", message, hint: "ed25519, ecdsa and rsa keys can" }, key);
  }
  const found = Array.isArray(key) ? key[0] : key;
  if (!found?.isPrivateKey())
    throw hostFailure({ code: "KEY_UNSUPPORTED", message: `the key file ${path} holds no private key` });
  return found;
}
