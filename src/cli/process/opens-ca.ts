import { openContext } from "#actions/cluster-context.ts";
import { KcoreError } from "#errors/problem.ts";
import { openAuthority } from "#pki/cluster.ts";
import { kcoreHome } from "./kcore-home.ts";

/** False if the passphrase is wrong for the CA of a context. True also without a CA to try, as before a cluster is created. */
export async function opensCa(passphrase: string, context: string | undefined): Promise<boolean> {
  try {
    const { folder } = await openContext({ home: kcoreHome(), ...(context !== undefined && { context }) });
    await openAuthority(folder, passphrase);
    return true;
  } catch (error) {
    return !(error instanceof KcoreError && error.problems.some(({ code }) => code === "PKI_PASSPHRASE_WRONG"));
  }
}
