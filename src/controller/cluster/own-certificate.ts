import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { credentialsVersion, loadCredentials, type CredentialFiles, type LoadedCredentials } from "#api/credentials.ts";
import { describeError, type Log } from "#api/log.ts";
import type { CertificateProof, SubCaInstalled } from "#api/controller-schemas.ts";
import { firstCertificate } from "#pki/chain.ts";
import { controllerChallenge, keyFingerprint, proveKey, publicDer, readPrivateKey } from "#pki/keys.ts";
import { hostsOf, refusalOfNext, renewalReason, renewDays } from "#pki/expectation.ts";
import { isThere, replaceFile } from "#base/file.ts";
import { ensurePrivateFolder, syncFolder } from "#base/folder.ts";
import { issueLeaf, type Authority } from "#pki/issue.ts";
import { Refused } from "./refused.ts";
import { holdNextKey } from "./next-key.ts";

const dayMs = 86_400_000;
type Proof = z.input<typeof CertificateProof>;
type Installed = z.input<typeof SubCaInstalled>;

/** This controller's certificate with its key, from the deployment or from the last rotation or renewal. */
export type OwnCertificate = Awaited<ReturnType<typeof openOwnCertificate>>;

export interface OwnCertificateOptions {
  /** The files of the deployment. */
  readonly files: CredentialFiles;
  /** The folder of rotated files, which this process may write. */
  readonly folder: string;
  readonly log: Log;
  readonly clock: () => number;
}

/** @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID, PKI_IDENTITY */
export async function openOwnCertificate(options: OwnCertificateOptions) {
  const { files, folder, log, clock } = options;
  const rotated = { ...files, certFile: join(folder, "controller.crt"), keyFile: join(folder, "controller.key") };
  const nextCertFile = join(folder, "controller-next.crt");
  const nextKey = holdNextKey(clock);
  const listeners = new Set<(credentials: LoadedCredentials) => void>();
  let problem: string | undefined;
  let last: Promise<unknown> = Promise.resolve();
  /** Runs one piece of work at a time, so that none reads files while another replaces them. */
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };

  const versionOf = async (): Promise<string> =>
    (await Promise.all([credentialsVersion(files), credentialsVersion(rotated)])).join(" ");
  const read = async (): Promise<LoadedCredentials> => {
    await finishReplacement({ ...rotated, nextCertFile });
    const deployed = await loadCredentials(files, "controller");
    if (!(await isThere(rotated.certFile))) return deployed;
    try {
      const newer = await loadCredentials(rotated, "controller");
      if (!isSame(newer, deployed)) throw new Error("it is another controller's");
      // A certificate that starts in the future (a clock was ahead) is used only if it has another key, which rotation made.
      if (startOf(newer) > clock() && newer.key === deployed.key) return deployed;
      return startOf(newer) > startOf(deployed) ? newer : deployed;
    } catch (error) {
      log.warn("the rotated certificate cannot be used, the deployed one is", {
        file: rotated.certFile,
        ...describeError(error),
      });
      return deployed;
    }
  };
  let version = await versionOf();
  let present = await read();
  const use = (fresh: LoadedCredentials): void => {
    if (fresh.cert === present.cert && fresh.ca === present.ca) return;
    present = fresh;
    for (const listener of listeners) listener(fresh);
    log.info("the certificate was reloaded", { expires: fresh.notAfter.toISOString() });
  };

  const put = async (certificate: string, keyPem: string): Promise<LoadedCredentials> => {
    // Two files cannot be replaced atomically: after a crash between them `finishReplacement` completes the change.
    await ensurePrivateFolder(folder);
    await replaceFile(nextCertFile, certificate, { mode: 0o644 });
    await replaceFile(rotated.keyFile, keyPem);
    await rename(nextCertFile, rotated.certFile);
    await syncFolder(folder);
    const fresh = await loadCredentials(rotated, "controller");
    version = await versionOf();
    use(fresh);
    return fresh;
  };

  return {
    credentials: (): LoadedCredentials => present,
    /** Calls `listener` whenever other credentials come into use. */
    watch: (listener: (credentials: LoadedCredentials) => void): void => void listeners.add(listener),
    /** Reads changed files again, and uses the younger good pair. Without a good deployed pair the present one stays. Bad pairs are logged. */
    reload: (): Promise<void> =>
      inTurn(async () => {
        try {
          const now = await versionOf();
          if (now === version) return;
          version = now;
          const fresh = await read();
          if (!isSame(fresh, present)) throw new Error("the new certificate is another controller's");
          use(fresh);
        } catch (error) {
          log.error("the new certificate cannot be used, the old one stays", describeError(error));
        }
      }),
    /**
     * Makes a new key and returns the proof of its possession. The key stays in memory, for ten minutes at most, until its certificate or
     * the next request comes.
     */
    request(nonce: string): Proof {
      const { cluster, id } = present.identity;
      const proof = nextKey.make(controllerChallenge(cluster, id, nonce));
      return { controllerId: id, ...proof, certificate: present.cert };
    },
    /**
     * Stores a certificate for the requested key, and uses it for new connections. @throws Refused unless it has the present
     * certificate's names, leads to the cluster's root, and its key is registered: other controllers would refuse it.
     */
    install: (certificate: string, isRegistered: (spki: string) => boolean): Promise<Installed> =>
      inTurn(async () => {
        const refuse = (reason: string): never => {
          throw new Refused(400, "CERTIFICATE_INVALID", `the certificate cannot be used: ${reason}`);
        };
        const keyPem = nextKey.pem() ?? refuse("no key was asked for in the last ten minutes");
        const spki = publicDer(readPrivateKey(keyPem, "the key that was asked for")).toString("base64");
        const hosts = hostsOf(firstCertificate(present.cert));
        const { identity, ca: rootPem } = present;
        const reason = renewalReason(certificate, { spki, hosts, identity, rootPem, now: clock() });
        if (reason !== undefined) refuse(reason);
        if (!isRegistered(keyFingerprint(Buffer.from(spki, "base64")))) refuse("its key is not registered");
        const fresh = await put(certificate, keyPem);
        nextKey.forget();
        const serial = firstCertificate(certificate).serialNumber.toLowerCase();
        return { controllerId: identity.id, serial, notAfter: fresh.notAfter.toISOString() };
      }),
    /**
     * Renews the certificate by this controller's own sub-CA, with the same key (ADR 0516). Due if at most 30 days are left, or if the
     * certificate starts in the future (a clock was ahead). It logs a failure and keeps the present certificate.
     */
    renewIfDue: (subCa: () => Authority): Promise<void> =>
      inTurn(async () => {
        const { identity, cert, key, notAfter } = present;
        const now = clock();
        try {
          if (startOf(present) <= now && notAfter.getTime() - now > renewDays * dayMs) return;
          const [host = "", ...addresses] = hostsOf(firstCertificate(cert));
          const own = readPrivateKey(key, "the controller's key");
          const spki = publicDer(own).toString("base64");
          const challenge = controllerChallenge(identity.cluster, identity.id, "renewal");
          const proof = { challenge, signature: proveKey(own, challenge) };
          const request = { role: "controller", id: identity.id, host, addresses, spki, proof } as const;
          const { chain } = issueLeaf(request, { authority: subCa(), now });
          const reason = refusalOfNext(chain, { spki, present, now });
          if (reason !== undefined) throw new Error(`its sub-CA cannot renew it: ${reason}`);
          await put(chain, key);
          problem = undefined;
        } catch (error) {
          const { message } = error as Error;
          if (problem !== message) log.warn("the controller's certificate was not renewed", describeError(error));
          problem = message;
        }
      }),
    /** The reason why the last due renewal failed; undefined if it succeeded. */
    problem: (): string | undefined => problem,
  };
}

/**
 * Finishes a replacement that a crash or a failing disk interrupted: renames the next certificate into place if its key is in place,
 * else deletes it.
 */
async function finishReplacement({
  certFile,
  keyFile,
  nextCertFile,
}: CredentialFiles & { readonly nextCertFile: string }): Promise<void> {
  const [next, key] = await Promise.all([nextCertFile, keyFile].map((file) => readFile(file, "utf8").catch(() => "")));
  if (next === undefined || key === undefined || next === "") return;
  if (fits(next, key)) await rename(nextCertFile, certFile);
  else await rm(nextCertFile);
}

function fits(certificate: string, key: string): boolean {
  try {
    return firstCertificate(certificate).checkPrivateKey(readPrivateKey(key, "its key"));
  } catch {
    return false;
  }
}

function isSame({ identity: a }: LoadedCredentials, { identity: b }: LoadedCredentials): boolean {
  return a.cluster === b.cluster && a.id === b.id;
}

function startOf({ cert }: LoadedCredentials): number {
  return firstCertificate(cert).validFromDate.getTime();
}
