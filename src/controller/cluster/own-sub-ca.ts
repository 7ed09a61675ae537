import { randomBytes, type X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describeError, type Log } from "#api/log.ts";
import type { SubCaProof } from "#api/controller-schemas.ts";
import type { Renewed } from "#api/schemas.ts";
import { keyFingerprint, publicDer, readPublicKey, renewalChallenge, subCaChallenge } from "#pki/keys.ts";
import { replaceFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { hostsOf } from "#pki/expectation.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { issueLeaf, type Authority } from "#pki/issue.ts";
import { readSubCa, refusalOfSubCa } from "#pki/sub-ca.ts";
import { Refused } from "./refused.ts";
import type { Certificates } from "./certificates.ts";
import type { Caller } from "./nodes.ts";
import { holdNextKey } from "./next-key.ts";
import type { Records } from "./records.ts";

const nonceLifeMs = 60_000;
const pemStart = /^-----BEGIN/;

/** This controller's own sub-CA: it renews nodes' certificates, and is replaced without a restart. */
export type SubCa = ReturnType<typeof openSubCa>;

export interface SubCaOptions {
  readonly cluster: string;
  readonly controllerId: string;
  readonly rootPem: () => string;
  /** The files of the deployment. */
  readonly files: { readonly certFile: string; readonly keyFile: string };
  /** The folder of rotated files, which this process may write. */
  readonly folder: string;
  readonly records: Records;
  readonly certificates: Certificates;
  readonly log: Log;
  readonly clock: () => number;
}

export function openSubCa(options: SubCaOptions) {
  const { cluster, controllerId, rootPem, files, folder, records, certificates, log, clock } = options;
  const rotated = { certFile: join(folder, "sub-ca.crt"), keyFile: join(folder, "sub-ca.key") };
  const nextKey = holdNextKey(clock);
  const nonces = new Map<string, { readonly nonce: string; readonly key: string; readonly expires: number }>();
  let authority: Authority | undefined;
  /** The last logged problem of each file, so that it is not logged again. */
  const lastProblems = new Map<string, unknown>();

  const read = async (pair: {
    readonly certFile: string;
    readonly keyFile: string;
  }): Promise<Authority | undefined> => {
    try {
      const [certificatePem, keyPem] = await Promise.all([
        readFile(pair.certFile, "utf8"),
        readFile(pair.keyFile, "utf8"),
      ]);
      return readSubCa({ cluster, controllerId, rootPem: rootPem(), certificatePem, keyPem, where: pair.keyFile });
    } catch (error) {
      const { error: reason } = describeError(error);
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" && lastProblems.get(pair.certFile) !== reason) {
        lastProblems.set(pair.certFile, reason);
        log.warn("a sub-CA cannot be used", { file: pair.certFile, reason });
      }
      return undefined;
    }
  };
  const problemOf = (found: Authority | undefined): string | undefined => {
    if (!found) return "this controller has no sub-CA, so it renews nothing";
    if (found.certificate.validToDate.getTime() <= clock()) return "this controller's sub-CA has expired";
    const isRevoked = certificates.isRevoked(keyFingerprint(publicDer(found.certificate.publicKey)));
    return isRevoked ? "this controller's sub-CA was revoked" : undefined;
  };
  /** The sub-CA's certificate and key, to issue with. @throws Refused SUB_CA_MISSING */
  const current = (): Authority => {
    const problem = problemOf(authority);
    if (authority && problem === undefined) return authority;
    throw new Refused(
      503,
      "SUB_CA_MISSING",
      problem ?? "this controller has no sub-CA",
      "on the bastion: kcore rotate sub-ca",
    );
  };
  const serialOf = ({ certificate }: Authority): string => certificate.serialNumber.toLowerCase();
  /** Reads the pairs of the deployment and of the last rotation, and uses the newer one; keeps the present one if both are bad. */
  const load = async (): Promise<void> => {
    const pairs = await Promise.all([read(files), read(rotated)]);
    const usable = pairs.filter((pair) => pair !== undefined);
    const [newest] = usable.toSorted(
      (a, b) => b.certificate.validFromDate.getTime() - a.certificate.validFromDate.getTime(),
    );
    if (newest && (!authority || serialOf(authority) !== serialOf(newest))) {
      log.info("the sub-CA is in use", {
        serial: serialOf(newest),
        expires: newest.certificate.validToDate.toISOString(),
      });
    }
    authority = newest ?? authority;
  };

  return {
    load,
    authority: current,
    published: () =>
      authority && {
        certificate: authority.certificatePem,
        serial: serialOf(authority),
        notAfter: authority.certificate.validToDate.toISOString(),
      },
    /** Issues a nonce for one renewal by this node, valid for a minute. @throws Refused SUB_CA_MISSING */
    challenge({ id, key }: Caller) {
      current();
      const nonce = randomBytes(24).toString("base64url");
      const expires = clock() + nonceLifeMs;
      nonces.set(id, { nonce, key, expires });
      return { nonce, challenge: renewalChallenge(cluster, id, nonce), expires: new Date(expires).toISOString() };
    },
    /** Issues a node's next certificate, for a new key that the node proves to have. @throws Refused; KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND */
    async renew(
      { id, key, certificate }: Caller & { readonly certificate: X509Certificate },
      { nonce, spki, signature }: { readonly nonce: string; readonly spki: string; readonly signature: string },
    ): Promise<Renewed> {
      const issuer = current();
      const issued = nonces.get(id);
      nonces.delete(id);
      if (!issued || issued.nonce !== nonce || issued.key !== key || issued.expires < clock()) {
        throw new Refused(403, "PKI_PROOF_INVALID", "the nonce is not the one that was given, or too old", "ask anew");
      }
      const fingerprint = keyFingerprint(publicDer(readPublicKey(spki)));
      if (fingerprint === key) throw new Refused(400, "API_INVALID", "a renewal needs a new key");
      if (certificates.isRevoked(fingerprint)) throw new Refused(403, "KEY_REVOKED", "this new key was revoked");
      const [host = "", ...addresses] = hostsOf(certificate);
      const proof = { challenge: renewalChallenge(cluster, id, nonce), signature };
      // The names come from the present certificate, whose issuer decided them; the request brings only the key.
      const leaf = issueLeaf({ role: "node", id, host, addresses, spki, proof }, { authority: issuer, now: clock() });
      const notAfter = leaf.notAfter.toISOString();
      // The record is written before the answer: a certificate without a record could not be revoked.
      await records.write([
        certificates.changeToRecord(leaf.serial, {
          spki: fingerprint,
          role: "node",
          id,
          issuer: serialOf(issuer),
          notAfter,
          issued: new Date(clock()).toISOString(),
          by: `controller ${controllerId}`,
        }),
        ...certificates.changesToForget(),
      ]);
      return { certificate: leaf.chain, serial: leaf.serial, notAfter };
    },
    request: (nonce: string): SubCaProof => ({
      controllerId,
      ...nextKey.make(subCaChallenge(cluster, controllerId, nonce)),
    }),
    /** Stores a certificate for the requested key, and uses both at once. @throws Refused SUB_CA_INVALID */
    async install(certificatePem: string, by: string) {
      const refuse = (reason: string): never => {
        throw new Refused(400, "SUB_CA_INVALID", `the sub-CA's certificate cannot be used: ${reason}`);
      };
      if (!pemStart.test(certificatePem)) refuse("it is no PEM text");
      const reason = refusalOfSubCa(certificatePem, { cluster, controllerId, rootPem: rootPem() });
      if (reason !== undefined) refuse(reason);
      const keyPem = nextKey.pem() ?? refuse("no key was asked for in the last ten minutes");
      const where = "the key that was asked for";
      const next = readSubCa({ cluster, controllerId, rootPem: rootPem(), certificatePem, keyPem, where });
      if (next.certificate.validToDate.getTime() <= clock()) refuse("it has expired");
      const entry = inventoryEntry(certificatePem);
      if (!entry) return refuse("it names no controller");
      // Key before certificate: a crash between the two leaves a pair that does not fit, so `load` uses the deployed pair.
      await ensurePrivateFolder(folder);
      await replaceFile(rotated.keyFile, keyPem);
      await replaceFile(rotated.certFile, certificatePem, { mode: 0o644 });
      nextKey.forget();
      authority = next;
      const { serial, ...rest } = entry;
      await records.put([
        certificates.changeToRecord(serial, { ...rest, issued: new Date(clock()).toISOString(), by }),
      ]);
      log.info("the sub-CA was replaced", { serial, by });
      return { controllerId, serial, notAfter: entry.notAfter };
    },
  };
}
