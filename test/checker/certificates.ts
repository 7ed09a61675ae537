import { createHash, X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { must } from "./commands.ts";

/** A key and a certificate, as files and as texts. */
export interface Holder {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
  /** SHA-256 of the DER SubjectPublicKeyInfo, lower-case hex. */
  readonly spki: string;
}

export interface Certificates {
  readonly cluster: string;
  readonly caFile: string;
  readonly ca: string;
  readonly issue: (role: "controller" | "operator", id: string, address?: string) => Promise<Holder>;
}

const newKey = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];

/** A cluster's CA, made with openssl(1) after the certificates' description in docs/security.md. */
export async function makeCertificates(folder: string, cluster: string): Promise<Certificates> {
  const caFile = join(folder, "ca.crt");
  const caKey = join(folder, "ca.key");
  await must([...newKey, caKey]);
  const asCa = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"];
  const named = ["-x509", "-key", caKey, "-subj", "/CN=the CA of the checker", "-days", "30", ...asCa];
  await must(["openssl", "req", ...named, "-out", caFile]);
  return {
    cluster,
    caFile,
    ca: await readFile(caFile, "utf8"),
    async issue(role, id, address) {
      const [certFile, keyFile, plan] = ["crt", "key", "cnf"].map((end) => join(folder, `${role}-${id}.${end}`)) as [
        string,
        string,
        string,
      ];
      const names = [`URI:kcore://${cluster}/${role}/${id}`, ...(address === undefined ? [] : [`IP:${address}`])];
      const usages = role === "operator" ? "clientAuth" : "serverAuth,clientAuth";
      const lines = [
        "basicConstraints=critical,CA:FALSE",
        "keyUsage=critical,digitalSignature",
        `extendedKeyUsage=${usages}`,
        `subjectAltName=${names.join(",")}`,
      ];
      await writeFile(plan, `${lines.join("\n")}\n`);
      await must([...newKey, keyFile]);
      const subject = role === "operator" ? "/CN=kctl" : `/CN=kcore-controller-${address}`;
      const request = await must(["openssl", "req", "-new", "-key", keyFile, "-subj", subject]);
      const signed = ["-CA", caFile, "-CAkey", caKey, "-days", "20", "-extfile", plan, "-out", certFile];
      await must(["openssl", "x509", "-req", ...signed], request);
      const [cert, key] = [await readFile(certFile, "utf8"), await readFile(keyFile, "utf8")];
      const der = new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" });
      return { certFile, keyFile, cert, key, spki: createHash("sha256").update(der).digest("hex") };
    },
  };
}
