import { KcoreError } from "#errors/problem.ts";
import { createCluster, type CreatedCluster } from "#pki/cluster.ts";
import { leave } from "../confirm.ts";
import { contextHome } from "../contexts.ts";
import { givenPassphrase } from "../passphrase.ts";
import { canPrompt, promptLine } from "../prompt.ts";
import { whoAmI } from "../who.ts";

/** What `kcore create cluster` and a `Cluster` manifest say. */
export interface ClusterRequest {
  readonly context: string;
  readonly controllers: readonly string[];
  readonly passphraseFile?: string;
  readonly force?: boolean;
}

/** Makes a cluster's CA and context; the passphrase is given, or asked for twice. @throws KcoreError */
export async function makeCluster({ passphraseFile, ...request }: ClusterRequest): Promise<CreatedCluster> {
  const passphrase = (await givenPassphrase(passphraseFile)) ?? (await askNewPassphrase());
  return createCluster({
    ...contextHome(),
    ...request,
    operator: whoAmI().split("@")[0] ?? "operator",
    passphrase,
    now: Date.now(),
  });
}

async function askNewPassphrase(): Promise<string> {
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: "nobody is there to type the passphrase of the CA's keys",
      hint: "give --passphrase-file FILE or KCORE_CA_PASSPHRASE",
    });
  const signal = new AbortController().signal;
  const ask = async (text: string) => (await promptLine({ text, secret: true, signal, onInterrupt: leave })) ?? "";
  const first = await ask("New passphrase of the CA's keys");
  if ((await ask("Once more")) === first) return first;
  throw new KcoreError({ code: "USAGE", message: "the two passphrases differ", hint: "try again" });
}
