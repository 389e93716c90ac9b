# Completion of kubectl-nacre for bash. For `kubectl nacre`: kubectl nacre completion kubectl

_kubectl_nacre() {
    local line="${COMP_LINE:0:COMP_POINT}" words answer directive word
    # bash takes words apart at = and :, which belong to them here.
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    word="${words[-1]}"
    mapfile -t answer < <(kubectl-nacre __complete -- "${words[@]:1}" 2>/dev/null)
    ((${#answer[@]})) || return
    directive="${answer[-1]#:}"
    unset 'answer[-1]'
    ((directive & 4)) || compopt -o default
    ((directive & 2)) && compopt -o nospace
    COMPREPLY=("${answer[@]%%$'\t'*}")
    # What stands before the last = or : is there already.
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[=:]}"}"}")
}

complete -F _kubectl_nacre kubectl-nacre
