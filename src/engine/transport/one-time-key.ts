import ssh2 from "ssh2";

/** A key pair that is used once: `secret` as a key file's text, `line` as `TYPE BASE64`. */
export interface OneTimeKey {
  readonly secret: string;
  readonly line: string;
}

/** Makes an Ed25519 key pair. A few in a thousand of ssh2's pairs can be read neither by ssh2 nor by OpenSSH: another pair replaces them. */
export function makeOneTimeKey(): OneTimeKey {
  for (;;) {
    const { private: secret, public: line } = ssh2.utils.generateKeyPairSync("ed25519", { comment: "kcore-feed" });
    const [type, key] = line.split(" ");
    if (!(ssh2.utils.parseKey(secret) instanceof Error)) return { secret, line: `${type} ${key}` };
  }
}
