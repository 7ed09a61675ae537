import ssh2 from "ssh2";

/** A key pair that is used once: `secret` as a key file's text, `line` as `TYPE BASE64`. */
export interface OneTimeKey {
  readonly secret: string;
  readonly line: string;
}

/** Makes an Ed25519 key pair. Some of a thousand that ssh2 makes are such that neither ssh2 nor OpenSSH can read them: these are made anew. */
export function makeOneTimeKey(): OneTimeKey {
  for (;;) {
    const { private: secret, public: line } = ssh2.utils.generateKeyPairSync("ed25519", { comment: "kcore-feed" });
    const [type, key] = line.split(" ");
    if (!(ssh2.utils.parseKey(secret) instanceof Error)) return { secret, line: `${type} ${key}` };
  }
}
