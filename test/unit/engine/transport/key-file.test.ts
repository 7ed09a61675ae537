import { expect } from "chai";
import { generateKeyPairSync } from "node:crypto";
import ssh2 from "ssh2";
import { inspectKeyFile } from "#engine/transport/key-file.ts";

describe("key files", () => {
  it("are recognized by their first lines", () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    expect(inspectKeyFile(privateKey.export({ type: "pkcs8", format: "pem" }).toString())).to.deep.equal({
      format: "pkcs8",
      encrypted: false,
    });
    const pem = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAA==\n";
    expect(inspectKeyFile(pem)).to.deep.equal({ format: "pem", encrypted: true });
    expect(inspectKeyFile("-----BEGIN EC PRIVATE KEY-----\n")).to.deep.equal({ format: "pem", encrypted: false });
    expect(inspectKeyFile("PuTTY-User-Key-File-2: ssh-rsa\r\nEncryption: aes256-cbc\r\n").encrypted).to.equal(true);
    expect(inspectKeyFile("ssh-ed25519 AAAA").format).to.equal("unknown");
    expect(inspectKeyFile("").format).to.equal("unknown");
  });

  it("of OpenSSH's format show their cipher and their public half", () => {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    const plain = inspectKeyFile(pair.private);
    expect([plain.format, plain.encrypted, plain.cipher]).to.deep.equal(["openssh", false, "none"]);
    expect(`ssh-ed25519 ${plain.publicBlob?.toString("base64")}`).to.equal(pair.public.trim());
  });

  it("that are truncated cause no error", () => {
    const { private: text } = ssh2.utils.generateKeyPairSync("ed25519");
    for (let length = 0; length < text.length; length += 7) inspectKeyFile(text.slice(0, length));
  });
});
