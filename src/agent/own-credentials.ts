import { credentialsVersion, loadCredentials, type CredentialFiles, type LoadedCredentials } from "#api/credentials.ts";
import { KcoreError } from "#errors/problem.ts";

/** The node's certificate with its key, as they lie on the disk. */
export interface OwnCredentials {
  readonly present: () => LoadedCredentials;
  /**
   * Loads the files again if they changed, and returns whether they did. @throws KcoreError; then the present ones stay
   */
  readonly reloadIfChanged: () => Promise<boolean>;
}

/** @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID, PKI_IDENTITY */
export async function openOwnCredentials(files: CredentialFiles): Promise<OwnCredentials> {
  let present = await loadCredentials(files, "node");
  let seen = present.version;
  return {
    present: () => present,
    async reloadIfChanged() {
      const version = await credentialsVersion(files);
      if (version === seen) return false;
      seen = version;
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
