import type { Sample } from "#support/sample.ts";

/** Parts of files that others own too. */
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEvHvQH+aUymWiPn6yVl0xaK+K77RBByvV0WFhkg2iyl sample";
const foreign = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFFw5PV/2+5Y/wKrVm3xTcwL+74CjeCwsdRiPZB3cJHO foreign";

/** A user whom an ordinary password lets in; the BusyBox node has no program that makes one. */
const makeUser = (
  name: string,
  id: number,
): string => `if command -v useradd >/dev/null; then useradd -m -u ${id} -s /bin/sh ${name}
else
  echo ${name}:x:${id}:${id}::/home/${name}:/bin/sh >>/etc/passwd && echo ${name}:x:${id}: >>/etc/group &&
    echo '${name}:!:19000:0:99999:7:::' >>/etc/shadow && mkdir -p /home/${name} && chown ${id}:${id} /home/${name}
fi && sed -i 's,^${name}:[^:]*:,${name}:$6$salt$sample:,' /etc/shadow`;

export const samples: readonly Sample[] = [
  {
    id: "file.line",
    module: "file.line",
    args: {
      path: "/etc/ssh/sshd_config",
      match: "^#?MaxSessions[[:blank:]]",
      line: "MaxSessions 20",
      validate: "/usr/sbin/sshd -t -f %s",
      backup: true,
    },
    busybox: { refuses: "FILE_NOT_EDITABLE", forWantOf: "/etc/ssh/sshd_config" },
    drift: {
      by: "sed -i 's/^MaxSessions.*/MaxSessions 5/' /etc/ssh/sshd_config",
      finds: { line: "MaxSessions 5" },
    },
    refusal: {
      args: {
        path: "/etc/ssh/sshd_config",
        line: "MaxSessionsOfAll 20",
        validate: "/usr/sbin/sshd -t -f %s",
      },
      code: "FILE_INVALID",
    },
  },
  {
    id: "file.line absent",
    module: "file.line",
    args: { path: "/etc/motd", match: "ABSOLUTELY NO WARRANTY", state: "absent" },
    busybox: "converges",
    before: "printf 'hello\\nABSOLUTELY NO WARRANTY\\n' >/etc/motd",
    drift: { by: "echo 'ABSOLUTELY NO WARRANTY' >>/etc/motd", finds: { state: "present" } },
  },
  {
    id: "file.block",
    module: "file.block",
    args: {
      path: "/etc/profile",
      name: "sample",
      content: "KCORE_SAMPLE=1\nexport KCORE_SAMPLE\n",
      validate: "sh -n %s",
      create: true,
    },
    busybox: "converges",
    drift: {
      by: "sed -i 's/^KCORE_SAMPLE=.*/KCORE_SAMPLE=2/' /etc/profile && sh -n /etc/profile",
      finds: { block: /^sha256:/ },
    },
    refusal: {
      args: { path: "/etc/profile.half", name: "sample", content: "a" },
      code: "FILE_NOT_EDITABLE",
      before: "echo '# BEGIN kcore sample' >/etc/profile.half",
      after: "rm /etc/profile.half",
    },
  },
  {
    id: "hosts.entry",
    module: "hosts.entry",
    args: { address: "192.0.2.10", names: ["sample.example.org", "sample"] },
    busybox: "converges",
    drift: {
      by: "sed '/sample/d' /etc/hosts >/tmp/hosts && cat /tmp/hosts >/etc/hosts && echo 192.0.2.10 sample >>/etc/hosts",
      finds: { "sample.example.org": "absent" },
    },
    refusal: { args: { address: "192.0.2.11", names: "sample" }, code: "FILE_NOT_EDITABLE" },
  },
  {
    id: "authorized_key.present",
    module: "authorized_key.present",
    args: { user: "keyed", keys: key, options: ["no-agent-forwarding"], exclusive: true },
    busybox: "converges",
    before: makeUser("keyed", 4242),
    drift: {
      by: `echo '${foreign}' >>~keyed/.ssh/authorized_keys`,
      finds: { others: "ssh-ed25519 foreign" },
    },
    refusal: {
      args: { user: "keyed", keys: key },
      code: "FILE_IN_THE_WAY",
      before: "mv ~keyed/.ssh/authorized_keys ~keyed/.ssh/real && ln -s real ~keyed/.ssh/authorized_keys",
      after: "mv ~keyed/.ssh/real ~keyed/.ssh/authorized_keys",
    },
  },
  // A hash comes as a secret, which a state has only as a parameter: the unit tests set one with Debian's chpasswd.
  {
    id: "user.password",
    module: "user.password",
    args: { name: "keypad", lock: true },
    busybox: "converges",
    before: makeUser("keypad", 4243),
    drift: { by: "passwd -u keypad", finds: { login: "open" } },
  },
];
