import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { openAuthority } from "#pki/cluster.ts";
import { issuedFile } from "#pki/issued.ts";
import { openContext } from "./cluster-context.ts";

/**
 * Tries the passphrase that was given at the start of the run, so that a wrong passphrase is found before any change. If none
 * was given, the action asks for it if a node of the run has no certificate yet and an operator can answer. A dry run does
 * not ask. Gives the cluster's name, root and controllers.
 */
export const pkiCheckPassphrase = defineAction({
  name: "pki.checkPassphrase",
  outputs: ["cluster", "controllers", "root"],
  summary:
    "Tries the passphrase of the cluster CA's keys; asks for it where a node needs a certificate; tells the cluster, its root and its controllers.",
  args: z.strictObject({}),
  run: async (_, context) => {
    if (context.givenPassphrase === undefined && (await needsCertificates(context)))
      // Without an operator to answer, the run goes on: the action that needs the passphrase refuses.
      await context.passphrase().catch(unlessUnanswered);
    return check(context);
  },
  plan: (_, context) => check(context),
});

/** Whether the context lacks the certificate of at least one node of the run; false without a context. */
async function needsCertificates(context: ActionContext): Promise<boolean> {
  const cluster = await openContext(context).catch(() => undefined);
  if (!cluster) return false;
  const ids = context.targets.flatMap((name) => context.nodes.get(name)?.id ?? []);
  return ids.some((id) => !existsSync(issuedFile(cluster.folder, id, "node")));
}

function unlessUnanswered(error: unknown): void {
  if (!(error instanceof KcoreError && error.problems.some(({ code }) => code === "QUESTION_UNANSWERED"))) throw error;
}

async function check(context: ActionContext): Promise<ActionResult> {
  const { givenPassphrase } = context;
  const { folder, ca, cert, controllers } = await openContext(context);
  if (givenPassphrase !== undefined) await openAuthority(folder, givenPassphrase);
  const { cluster } = identityOf(firstCertificate(cert), "client");
  // `memberOf` of fact.assert computes the same digest on a node, with shell tools.
  const text = firstCertificate(ca)
    .toString()
    .replaceAll(/^-.*$|\s/gm, "");
  const root = createHash("sha256").update(text).digest("hex").slice(0, 16);
  return { changed: false, outputs: { cluster, root, controllers: [...controllers] } };
}
