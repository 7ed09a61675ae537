import { cleanLine } from "#engine/events/clean.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { formatResult, isForPeople } from "../terminal/format-result.ts";
import { askUpdates, callForUpdate, getUpdate } from "./ask-updates.ts";
import type { ChangeFlags } from "./change-commands.ts";
import { followOne } from "./follow-command.ts";
import { nameOf } from "./named-updates.ts";
import { openSigner } from "./open-signer.ts";

/**
 * `kcore update cluster takeover`: the bastion signs the next epoch for the controller that is asked, the first that answers.
 * @throws KcoreError UPDATE_UNKNOWN, UPDATE_OWNED, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG
 */
export async function takeOverUpdate(
  given: string | undefined,
  { filename, watch = false, output, ...flags }: ChangeFlags,
): Promise<void> {
  const name = await nameOf(given, filename ? { filename } : {});
  const cluster = await openCluster(flags);
  const { owner: before, takeover } = await getUpdate(cluster, name);
  const signer = await openSigner(cluster, flags.passphraseFile);
  const ownership = signer.owner(name, takeover);
  const { endpoint, ...result } = await askUpdates(cluster, async (client) => ({
    ...(await client.call("takeOverUpdate", { ownership }, { id: name })),
    endpoint: (await callForUpdate(client, name)).owner.endpoint,
  }));
  const { owner, epoch } = result;
  const again =
    before.id === owner ? `it was before; for another: kcore -s HOST update cluster takeover ${name}\n` : "";
  const draw = (): string => `${cleanLine(`${name} is owned by ${endpoint ?? owner}: epoch ${epoch}`)}\n${again}`;
  if (!watch || isForPeople(output)) process.stdout.write(formatResult({ name, ...result }, output, draw));
  if (watch) await followOne(name, { output, ...flags });
}
