import { join } from "node:path";
import { refuseWrongClock } from "#api/refuse-wrong-clock.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { renewOperatorIfNeeded } from "#pki/cluster.ts";
import type { Context } from "#pki/contexts.ts";
import { expiryWarning, type ExpiryWarning } from "#pki/expectation.ts";
import { readText } from "#base/file.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import type { Say } from "../terminal/say.ts";

type ContextCertificates = Pick<Context, "folder" | "cert" | "ca">;
type OperatorContext = ContextCertificates & Pick<Context, "controllers" | "key">;

/** The certificates on this machine that expire soon: the operator's, the sub-CA's, the root's. */
export async function endingsHere(
  { folder, cert, ca }: ContextCertificates,
  now: number,
): Promise<readonly ExpiryWarning[]> {
  // A context without the CA has no sub-CA here.
  const subCa = await readText(join(folder, "sub-ca.crt")).catch(() => undefined);
  const texts = [
    { pem: cert, what: "the operator's certificate", way: "kcore rotate certs" },
    { pem: subCa, what: "this machine's sub-CA", way: "kcore rotate sub-ca" },
    { pem: ca, what: "the cluster's root", way: "its nodes need a new cluster" },
  ];
  return texts.flatMap(({ pem, what, way }) =>
    pem === undefined ? [] : (expiryWarning({ what, notAfter: firstCertificate(pem).validToDate, way }, now) ?? []),
  );
}

/**
 * Renews the operator's certificate at 30 days left if the environment has the CA's passphrase; true if renewed.
 * Else warns of certificates that expire soon: the CA's key stays closed without its passphrase (ADR 0111).
 */
export async function keepOperator(present: OperatorContext, say: Say): Promise<boolean> {
  const now = Date.now();
  const endings = await endingsHere(present, now);
  const passphrase = endings.length === 0 ? undefined : await givenPassphrase(undefined);
  if (passphrase !== undefined)
    try {
      const { folder, controllers: endpoints } = present;
      await refuseWrongClock({ ...present, endpoints });
      if (await renewOperatorIfNeeded(folder, await openIssuer(folder, passphrase, now), now)) {
        say("renewed the operator's certificate");
        return true;
      }
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      say(`the operator's certificate was not renewed: ${error.message}`);
    }
  for (const { message } of endings) say(`warning: ${message}`);
  return false;
}
