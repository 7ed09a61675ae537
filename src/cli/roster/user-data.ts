import { existsSync } from "node:fs";
import { inspectKeyFile } from "#engine/transport/key-file.ts";
import { hostKeyOf } from "#engine/transport/host-key.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { readText } from "#base/file.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { findProject } from "../project/find-project.ts";
import type { CommonFlags } from "../options.ts";
import { printResult } from "../terminal/format-result.ts";
import { seedFilesOf } from "./cloud-config.ts";
import { nodeNamed, ownRoster } from "./own-roster.ts";
import { pinnedHostKey } from "./pinned-host-key.ts";
import { readPublicKeyFile } from "./public-key-file.ts";
import { findIsoTool, writeIso, writeSeed } from "./write-seed.ts";

export interface UserDataFlags extends CommonFlags {
  readonly key?: readonly string[];
  readonly seed?: string;
  readonly iso?: string;
  readonly renew?: boolean;
  readonly output: "text" | "json";
}

/** `kcore roster user-data`: nothing is pinned before all that the output needs is there. */
export async function writeUserData(name: string, flags: UserDataFlags): Promise<void> {
  const { project, key, seed, iso, renew, output } = flags;
  const root = findProject(project);
  const roster = ownRoster(root);
  const node = nodeNamed(roster, name);
  if (node.transport === "local") throw usageError(`${name} is this machine itself`, "name a node that SSH reaches");
  const keys = key ? key.map((file) => lineOf(readPublicKeyFile(file))) : [await identityLine(node)];
  const tool = iso === undefined ? undefined : await findIsoTool();
  // Refuses a roster that a first boot cannot fulfil, before a key is made.
  seedFilesOf(node, keys, { secret: "", line: "" });
  const hostKey = await pinnedHostKey(root, roster, node, { renew: renew === true });
  const files = seedFilesOf(node, keys, hostKey);
  if (seed !== undefined) await writeSeed(seed, files);
  if (iso !== undefined && tool) await writeIso(iso, files, tool);

  const { fingerprint, pinnedIn } = hostKey;
  const result = { node: name, hostKey: hostKey.line, fingerprint, ...omitUndefined({ pinnedIn, seed, iso }), files };
  const written = [seed, iso].filter((path) => path !== undefined);
  printResult(result, output, () =>
    written.length === 0
      ? files["user-data"]
      : `${name}  ${fingerprint}  ${pinnedIn === undefined ? "pinned already" : `pinned in ${pinnedIn}`}\n  the first boot's files are in ${written.join(" and ")}\nnext: boot ${name} with them, then: kcore ping --on ${name}\n`,
  );
  process.stderr.write(
    `the output holds the private host key of ${name}: keep it secret, and delete it after the first boot\n`,
  );
}

function lineOf({ type, key, comment }: ReturnType<typeof readPublicKeyFile>): string {
  return [type, key, comment].filter((part) => part !== undefined).join(" ");
}

/** The public half of the key with which the roster logs in to the node. @throws KcoreError USAGE, KEY_UNREADABLE */
async function identityLine({ name, identityFile }: NodeEntry): Promise<string> {
  if (identityFile === undefined)
    throw usageError(`the roster names no identityFile for ${name}`, "name a public key: --key FILE.pub");
  if (identityFile.endsWith(".pub")) return lineOf(readPublicKeyFile(identityFile));
  if (existsSync(`${identityFile}.pub`)) return lineOf(readPublicKeyFile(`${identityFile}.pub`));
  // OpenSSH's format has the public half in the clear, also of a key with a passphrase.
  const { publicBlob } = inspectKeyFile(await readText(identityFile));
  const found = publicBlob && hostKeyOf(publicBlob);
  if (found) return lineOf(found);
  throw new KcoreError({
    code: "KEY_UNREADABLE",
    message: `${identityFile} does not show its public half`,
    hint: `ssh-keygen -y -f ${identityFile} >${identityFile}.pub, or name a public key: --key FILE.pub`,
  });
}
