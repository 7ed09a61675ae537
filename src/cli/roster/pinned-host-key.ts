import { join } from "node:path";
import { createHash } from "node:crypto";
import { setNodeFields } from "#engine/roster/edit.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { makeKeyPair, type KeyPair } from "#engine/transport/key-pair.ts";
import { createFile, ifThere, readText, refuseUntrusted } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { editRosterFile, onlyFile } from "./own-roster.ts";

interface PinnedHostKey extends KeyPair {
  readonly fingerprint: string;
  /** The roster's file, if the key was pinned just now. */
  readonly pinnedIn?: string;
}

/**
 * The host key that the roster pins for a machine to be, with its private half, which this user keeps in `~/.kcore/host-keys` (0600); a
 * node without a pinned key gets a new one. A private half is found by its pinned public half alone, so that no other project's is taken.
 * @throws KcoreError HOST_KEY_CHANGED, where a pinned key is not of this user's making and `renew` is not set; as editRosterFile
 */
export async function pinnedHostKey(
  root: string,
  roster: Roster,
  { name, hostKeys }: NodeEntry,
  { renew }: { readonly renew: boolean },
): Promise<PinnedHostKey> {
  if (!renew && hostKeys.length > 0) {
    for (const line of hostKeys) {
      const path = fileOf(line);
      await refuseUntrusted(path, { secret: true });
      const secret = await ifThere(readText(path));
      if (secret !== undefined) return withFingerprint({ secret, line });
    }
    throw new KcoreError({
      code: "HOST_KEY_CHANGED",
      message: `the pinned host key of ${name} is not one that kcore made for a first boot here`,
      hint: `for a machine that gets another key: kcore roster user-data ${name} --renew`,
    });
  }
  const pair = makeKeyPair(name);
  const path = fileOf(pair.line);
  await ensurePrivateFolder(join(path, ".."));
  await createFile(path, pair.secret);
  const file = roster.positions.get(name)?.file ?? onlyFile(root);
  await editRosterFile(root, file, (text) => setNodeFields(text, name, { hostKeys: [pair.line] }));
  return withFingerprint(pair, file);
}

function withFingerprint(pair: KeyPair, pinnedIn?: string): PinnedHostKey {
  return { ...pair, fingerprint: parseHostKey(pair.line)?.fingerprint ?? "", ...omitUndefined({ pinnedIn }) };
}

/** The file of the private half, by the SHA-256 of the public one. */
function fileOf(line: string): string {
  const blob = Buffer.from(line.split(" ")[1] ?? "", "base64");
  return join(kcoreHome(), "host-keys", createHash("sha256").update(blob).digest("hex"));
}
