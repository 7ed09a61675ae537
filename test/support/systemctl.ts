/**
 * A systemctl that keeps one unit's properties in FOLDER/unit, writes each call to FOLDER/calls, and refuses unknown words.
 * `Breaks=VERB` makes a verb fail. With `Breaks=later` a started unit restarts at each look, with `Breaks=at-once` it fails at its start.
 * With `Breaks=condition` a start does nothing, with `Breaks=oneshot` the started process has ended.
 * `Restarted` is the main process of a started unit.
 */
export function fakeSystemctl(folder: string): Record<string, string> {
  return {
    sleep: ":",
    systemctl: `cd ${folder} && echo "$*" >>calls
ConditionResult=yes Type=simple MainPID=0 Restarted= LoadState=loaded NeedDaemonReload=no NRestarts=0 InvocationID=1 FragmentPath= Breaks=
while IFS== read -r key value; do eval "$key=\\$value"; done <unit
save() { for key in ActiveState ConditionResult Type LoadState UnitFileState MainPID Restarted NeedDaemonReload NRestarts InvocationID FragmentPath Breaks; do eval "echo $key=\\$$key"; done >unit; }
verb= names=
for word; do
  case $word in
    show | start | stop | restart | reload-or-restart | enable | disable | mask | unmask | is-active | reset-failed | daemon-reload | status) verb=\${verb:-$word} ;;
    -p | -- | -q | --no-pager | --full | -n | 20 | demo.service | demo.timer | --now) ;;
    *State* | NeedDaemonReload* | FragmentPath | ConditionResult* | MainPID) names=$word ;;
    *) echo "fake systemctl: $word?" >&2; exit 64 ;;
  esac
done
[ "$verb" != "$Breaks" ] || { echo "cannot $verb" >&2; exit 1; }
case $verb in
  show)
    [ "$Breaks" != later ] || [ "$names" != ActiveState,NRestarts,InvocationID ] || { NRestarts=$((NRestarts + 1)); save; }
    for key in $(echo "$names" | tr , ' '); do eval "echo $key=\\$$key"; done ;;
  start | restart | reload-or-restart)
    MainPID=\${Restarted:-$MainPID}
    case $Breaks in at-once) ActiveState=failed ;; condition) ConditionResult=no ;; oneshot) ActiveState=inactive ;; *) ActiveState=active ;; esac ;;
  stop) ActiveState=inactive ;;
  enable) UnitFileState=enabled ;;
  disable) [ "$UnitFileState" != enabled ] || UnitFileState=disabled ;;
  mask) UnitFileState=masked ;;
  unmask) UnitFileState=disabled LoadState=loaded ;;
  is-active) [ "$ActiveState" = active ] || exit 3 ;;
  daemon-reload) NeedDaemonReload=no ;;
  status) echo "the log of demo.service" ;;
esac
[ "$verb" = show ] || save`,
  };
}
