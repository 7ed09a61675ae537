import type { Sample } from "#support/sample.ts";

/** Commands that say when they change something; who may do what, what is let in, and what runs when. */
export const samples: readonly Sample[] = [
  {
    id: "package.installed policy",
    module: "package.installed",
    args: { names: ["nftables", "cron", "logrotate"], updateCache: true },
    helps: true,
  },
  {
    id: "command.run check",
    module: "command.run",
    args: { argv: ["test", "!", "-e", "/run/policy-broken"], check: true },
    isCheck: true,
    busybox: "converges",
  },
  {
    id: "firewall.rules",
    module: "firewall.rules",
    args: {
      allow: [
        { ports: 22 },
        { ports: [80, "8000-8100"], from: ["192.0.2.0/24", "2001:db8::/32"], comment: "web" },
        { protocol: "udp", ports: 53, interfaces: ["wg*"] },
      ],
      rules: "tcp dport @more counter accept",
      more: "set more {\n\ttype inet_service\n\telements = { 9090 }\n}",
    },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "nft" },
    drift: { by: "nft add rule inet kcore input tcp dport 23 accept", finds: { rules: "+ tcp dport 23 accept" } },
    refusal: { args: { allow: [{ ports: 80 }] }, code: "FIREWALL_LOCKS_OUT" },
  },
  {
    id: "sudoers.managed",
    module: "sudoers.managed",
    args: {
      name: "policy",
      user: "ops",
      commands: ["/usr/bin/systemctl restart cron.service", "/usr/bin/id"],
      runAs: ["root", "nobody"],
      noPassword: true,
    },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "visudo" },
    drift: { by: "chmod 0644 /etc/sudoers.d/policy", finds: { mode: "0644" } },
    refusal: { args: { name: "policy", content: "ops ALL=(ALL ALL\n" }, code: "FILE_INVALID" },
  },
  {
    id: "timer.managed",
    module: "timer.managed",
    args: {
      name: "policy",
      command: 'echo "100%: $(id -un) $NAME" >/run/policy-timer',
      onCalendar: "Mon..Fri 02:30",
      onBootSec: "2d",
      persistent: true,
      randomizedDelay: "10min",
      user: "ops",
      environment: { NAME: "it's 5%" },
    },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "systemctl" },
    drift: { by: "systemctl disable --now policy.timer", finds: { enabled: "disabled", active: "inactive" } },
    refusal: { args: { name: "policy", command: "true", onCalendar: "someday" }, code: "UNIT_INVALID" },
  },
  {
    id: "cron.managed",
    module: "cron.managed",
    args: { name: "policy", schedule: "*/5 * * * mon", command: "date +%F", environment: { MAILTO: "" } },
    busybox: { refuses: "FILE_NO_PARENT", forWantOf: "/etc/cron.d" },
    drift: { by: "rm /etc/cron.d/policy", finds: { kind: "absent" } },
  },
  {
    id: "logrotate.managed",
    module: "logrotate.managed",
    args: {
      name: "policy",
      paths: ["/var/log/policy/*.log", "/var/log/policy.log"],
      options: ["weekly", "rotate 8", "compress", "missingok"],
      postrotate: "test ! -e /run/policy-broken || exit 1",
    },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "logrotate" },
    drift: { by: "chown ops /etc/logrotate.d/policy", finds: { owner: "ops" } },
    refusal: { args: { name: "policy", paths: ["/var/log/a"], options: ["rotat 8"] }, code: "FILE_INVALID" },
  },
];
// Samples of what always runs would count as a change in each run, or as unknown in a dry run: command.run and script.run with `changed`
// are tried in test/integration/engine/session and in their unit tests.
