{{/* The name of everything in the release. */}}
{{- define "toolgate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What the selectors of Deployment, Service, budget and policy look for. */}}
{{- define "toolgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolgate.labels" -}}
{{ include "toolgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "toolgate.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "toolgate.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{/* The Secret with the address of Redis; empty without Redis. */}}
{{- define "toolgate.redisSecret" -}}
{{- with .Values.redis }}
{{- if .existingSecret }}{{ .existingSecret }}{{ else if .url }}{{ include "toolgate.name" $ }}-redis{{ end }}
{{- end }}
{{- end }}

{{/* Refuses values that would lose sessions or audit lines. */}}
{{- define "toolgate.check" -}}
{{- $many := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) }}
{{- if and .Values.redis.url .Values.redis.existingSecret }}{{ fail "Set only one of redis.url and redis.existingSecret." }}{{ end }}
{{- if and $many (not (include "toolgate.redisSecret" .)) }}{{ fail "Several replicas share their sessions through Redis: set redis.existingSecret, or use one replica." }}{{ end }}
{{- if and $many .Values.data.existingClaim }}{{ fail "data.existingClaim is for one replica: two of them would write the same files." }}{{ end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "Set ingress.host: the name that clients use." }}{{ end }}
{{- with .Values.config.store }}
{{- if or (kindIs "string" .) (hasKey . "url") }}{{ fail "Set redis.existingSecret in place of config.store.url: the address has a password, and config is not secret." }}{{ end }}
{{- if not (include "toolgate.redisSecret" $) }}{{ fail "config.store needs redis.existingSecret." }}{{ end }}
{{- end }}
{{- $a := .Values.autoscaling }}
{{- if $a.enabled }}
{{- if not (or $a.cpuPercent $a.callsInFlight $a.eventLoopPercent) }}{{ fail "autoscaling needs one of cpuPercent, callsInFlight and eventLoopPercent." }}{{ end }}
{{- if gt (int $a.minReplicas) (int $a.maxReplicas) }}{{ fail "autoscaling.minReplicas is more than maxReplicas." }}{{ end }}
{{- end }}
{{- end }}
