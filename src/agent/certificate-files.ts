import { readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { credentialsVersion, loadCredentials, type CredentialFiles, type LoadedCredentials } from "#api/credentials.ts";
import { createFile, isThere } from "#base/file.ts";
import { syncFolder } from "#base/folder.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { readPrivateKey } from "#pki/keys.ts";

export type OwnCredentials = Awaited<ReturnType<typeof openOwnCredentials>>;

/** Loads the node's certificate and key from the disk. @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID, PKI_IDENTITY */
export async function openOwnCredentials(files: CredentialFiles) {
  let present = await loadCredentials(files, "node");
  let lastVersion = present.version;
  return {
    present: (): LoadedCredentials => present,
    /** Loads the files again if they changed, and returns whether they did. @throws KcoreError; then the present credentials stay */
    async reloadIfChanged(): Promise<boolean> {
      const version = await credentialsVersion(files);
      if (version === lastVersion) return false;
      lastVersion = version;
      const fresh = await loadCredentials(files, "node");
      const { id, cluster } = present.identity;
      if (fresh.identity.id !== id || fresh.identity.cluster !== cluster) {
        throw new KcoreError({
          code: "CONFIG_INVALID",
          message: `${files.certFile} is now the certificate of another node (${fresh.identity.id})`,
          hint: "systemctl restart kcore-node-agent, if that is meant",
        });
      }
      present = fresh;
      return true;
    },
  };
}

/** The files of a new certificate and key until both are in place: `node.crt.next`, `node.key.next`. */
function nextFilesOf({ certFile, keyFile }: CredentialFiles) {
  return { certFile: `${certFile}.next`, keyFile: `${keyFile}.next` };
}

/** Writes a new key beside the present one (0600), flushed. An interrupted swap is finished or discarded before. */
export async function keepNextKey(files: CredentialFiles, key: string): Promise<void> {
  await finishSwap(files);
  await createFile(nextFilesOf(files).keyFile, key);
}

/**
 * Replaces the present certificate and key by a new certificate and the key of keepNextKey. Two files cannot change at once:
 * after a crash or failure in between, `finishSwap` finishes.
 */
export async function swapIn(files: CredentialFiles, certificate: string): Promise<void> {
  const next = nextFilesOf(files);
  await createFile(next.certFile, certificate, { mode: 0o644 });
  await syncFolder(dirname(next.certFile));
  await rename(next.keyFile, files.keyFile);
  await rename(next.certFile, files.certFile);
  for (const folder of new Set([dirname(files.keyFile), dirname(files.certFile)])) await syncFolder(folder);
}

/**
 * Finishes an interrupted swap. If the new key is in its place, the new certificate follows; otherwise both new files
 * are discarded, since the old pair is complete. Returns the action, for the log; undefined: no new files were there.
 */
export async function finishSwap(files: CredentialFiles): Promise<"finished" | "discarded" | undefined> {
  const next = nextFilesOf(files);
  const [hasKey, hasCertificate] = await Promise.all([isThere(next.keyFile), isThere(next.certFile)]);
  if (!hasKey && !hasCertificate) return undefined;
  if (!hasKey && (await belongTogether(next.certFile, files.keyFile))) {
    await rename(next.certFile, files.certFile);
    await syncFolder(dirname(files.certFile));
    return "finished";
  }
  await rm(next.certFile, { force: true });
  await rm(next.keyFile, { force: true });
  return "discarded";
}

async function belongTogether(certFile: string, keyFile: string): Promise<boolean> {
  try {
    const [certificate, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
    return firstCertificate(certificate).checkPrivateKey(readPrivateKey(key, keyFile));
  } catch {
    return false;
  }
}
