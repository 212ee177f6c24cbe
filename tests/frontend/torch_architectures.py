"""Small architectures of transformers and torchvision with random weights, for torch_suite.py.  This needs both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Sizes = dict[str, int]  # the batch, and the length of sequences
SIZES: tuple[Sizes, Sizes] = ({"batch": 2, "length": 12}, {"batch": 3, "length": 20})

LIMITS = {"batch": (2, 64), "length": (2, 64), "decoded": (2, 64), "samples": (1000, 100_000)}

Input = tuple[torch.Tensor, dict[int, str]]  # a tensor, and the names of its dynamic axes


@dataclass(frozen=True)
class Architecture:
    """A model and its inputs.

    model: the class in transformers, or the function in torchvision.
    inputs: a function that returns the inputs by name, for sizes.
    options: the options of the configuration, or of the function.
    given: arguments of `forward` that are always the same.
    part: the part of the model that runs, such as "encoder".  An empty string stands for the whole model.
    static: the names of sizes that are those of the first example.
    """

    model: str
    inputs: Callable[[Sizes], dict[str, Input]]
    options: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    part: str = ""
    static: tuple[str, ...] = ()
    library: str = "transformers"

    def module(self) -> torch.nn.Module:
        """Return the model in evaluation mode."""
        import torchvision
        import transformers

        torch.manual_seed(0)
        if self.library == "torchvision":
            family, _, name = self.model.rpartition(".")
            models = getattr(torchvision.models, family) if family else torchvision.models
            model = getattr(models, name)(weights=None, **self.options)
        else:
            kind = getattr(transformers, self.model)
            model = kind(kind.config_class(**self.options))
        for name in filter(None, self.part.split(".")):
            model = getattr(model, name)
        names = tuple(self.inputs(SIZES[0]))
        return _Tensors(model, names, self.given, by_name=self.library == "transformers").eval()

    def example(self, number: int) -> tuple[tuple[torch.Tensor, ...], dict[str, Any]]:
        """Return arguments, and the argument `dynamic_shapes` of torch.export.   number: 0 or 1, for two sizes."""
        torch.manual_seed(number)
        sizes = SIZES[number] | {name: SIZES[0][name] for name in self.static}
        inputs = self.inputs(sizes).values()
        dims = {name: torch.export.Dim(name, min=low, max=high) for name, (low, high) in LIMITS.items()}
        axes = tuple({axis: dims[name] for axis, name in axes.items() if name not in self.static} for _, axes in inputs)
        return tuple(tensor for tensor, _ in inputs), {"args": axes}


class _Tensors(torch.nn.Module):
    """A model whose arguments and results are tensors in flat order."""

    def __init__(self, model: Any, names: tuple[str, ...], given: dict[str, Any], *, by_name: bool) -> None:
        super().__init__()
        self.model, self.names, self.given, self.by_name = model, names, given, by_name

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.by_name:
            result = self.model(**dict(zip(self.names, args, strict=True)), **self.given)
        else:
            result = self.model(*args)
        return tuple(_tensors(result))


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [leaf for each in value for leaf in _tensors(each)] if hasattr(value, "__iter__") else []


# ---- inputs ----


def _text(sizes: Sizes) -> dict[str, Input]:
    axes = {0: "batch", 1: "length"}
    batch, length = sizes["batch"], sizes["length"]
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, length - 3 :] = 0
    return {"input_ids": (torch.randint(3, 100, (batch, length)), axes), "attention_mask": (mask, axes)}


def _tokens(sizes: Sizes) -> dict[str, Input]:
    return {"input_ids": _text(sizes)["input_ids"]}


def _encoded_text(sizes: Sizes) -> dict[str, Input]:
    decoded = torch.randint(3, 100, (sizes["batch"], sizes["length"] // 2 + 1))
    return _text(sizes) | {"decoder_input_ids": (decoded, {0: "batch", 1: "decoded"})}


def _image(size: int, channels: int = 3, name: str = "pixel_values") -> Callable[[Sizes], dict[str, Input]]:
    return lambda sizes: {name: (torch.randn(sizes["batch"], channels, size, size), {0: "batch"})}


def _image_and_text(size: int) -> Callable[[Sizes], dict[str, Input]]:
    return lambda sizes: _text(sizes) | _image(size)(sizes)


def _video(size: int, frames: int) -> Callable[[Sizes], dict[str, Input]]:
    return lambda sizes: {"pixel_values": (torch.randn(sizes["batch"], frames, 3, size, size), {0: "batch"})}


def _clip(frames: int, size: int) -> Callable[[Sizes], dict[str, Input]]:
    return lambda sizes: {"x": (torch.randn(sizes["batch"], 3, frames, size, size), {0: "batch"})}


def _sound(sizes: Sizes) -> dict[str, Input]:
    return {"input_values": (torch.randn(sizes["batch"], 400 * sizes["length"]), {0: "batch", 1: "samples"})}


def _mel(bins: int, frames: int) -> Callable[[Sizes], dict[str, Input]]:
    return lambda sizes: {"input_features": (torch.randn(sizes["batch"], bins, frames), {0: "batch"})}


def _mel_and_text(bins: int, frames: int) -> Callable[[Sizes], dict[str, Input]]:
    return lambda sizes: _mel(bins, frames)(sizes) | {"decoder_input_ids": _text(sizes)["input_ids"]}


def _spectrogram(sizes: Sizes) -> dict[str, Input]:
    return {"input_values": (torch.randn(sizes["batch"], 40, 32), {0: "batch"})}


def _mel_frames(sizes: Sizes) -> dict[str, Input]:
    return {"spectrogram": (torch.randn(sizes["batch"], sizes["length"], 16), {0: "batch", 1: "length"})}


def _fused_mel(sizes: Sizes) -> dict[str, Input]:
    longer = torch.zeros(sizes["batch"], 1, dtype=torch.bool)
    mel = torch.randn(sizes["batch"], 1, 64, 16)
    return {"input_features": (mel, {0: "batch"}), "is_longer": (longer, {0: "batch"})}


def _patches(sizes: Sizes) -> dict[str, Input]:
    batch, axes = sizes["batch"], {0: "batch"}
    return {
        "pixel_values": (torch.randn(batch, 16, 192), axes),
        "pixel_attention_mask": (torch.ones(batch, 16, dtype=torch.int32), axes),
        "spatial_shapes": (torch.tensor([[4, 4]] * batch), axes),
    }


def _past_values(sizes: Sizes) -> dict[str, Input]:
    return {"past_values": (torch.randn(sizes["batch"], 32, 2), {0: "batch"})}


# ---- architectures ----

_USUAL = {
    **{"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}
_GROUPED = _USUAL | {"num_key_value_heads": 2, "head_dim": 8}
_EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_NO_CACHE = {"use_cache": False}
_VISION = {
    **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
    **{"image_size": 32, "patch_size": 8},
}
_SEQ2SEQ = {
    **{"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4},
    **{"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2},
}
_T5 = {
    **{"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2},
    **{"num_heads": 4, "decoder_start_token_id": 0},
}
_SOUND = _USUAL | {
    **{"conv_dim": (16, 16, 16), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4), "num_feat_extract_layers": 3},
    **{"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2},
}
_CONVOLUTIONS = {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}
_STAGES = {
    **{"depths": [1, 1, 1, 1], "num_encoder_blocks": 4, "sr_ratios": [8, 4, 2, 1], "hidden_sizes": [8, 16, 16, 32]},
    **{"num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16},
}
_RESNET = {"model_type": "resnet", **_CONVOLUTIONS, "out_features": ["stage2", "stage3", "stage4"]}
_DETR = {
    **{"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "num_queries": 8},
    **{"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4},
    **{"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_labels": 5},
}

_DECODERS = {  # class: options beside _GROUPED
    **{"MistralModel": {"sliding_window": 8}, "GemmaModel": {}, "Gemma2Model": {"sliding_window": 8}},
    **{"Gemma3TextModel": {"sliding_window": 8}, "PhiModel": {}, "Phi3Model": {}, "Qwen3Model": {}},
    **{"StableLmModel": {}, "Starcoder2Model": {}, "CohereModel": {}, "GraniteModel": {}, "Olmo2Model": {}},
    **{"GPTNeoXModel": {}, "PersimmonModel": {}, "GlmModel": {}, "SmolLM3Model": {}, "NemotronModel": {}},
    **{"MixtralModel": _EXPERTS, "Qwen2MoeModel": _EXPERTS | {"shared_expert_intermediate_size": 16}},
    **{"OlmoeModel": _EXPERTS, "Qwen3MoeModel": _EXPERTS, "GptOssModel": _EXPERTS | {"sliding_window": 8}},
}
_ENCODERS = {  # class: options beside _USUAL
    **{"AlbertModel": {"embedding_size": 16}, "MPNetModel": {}, "ConvBertModel": {"embedding_size": 32}},
    **{"DebertaModel": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "RoFormerModel": {}},
    "DebertaV2Model": {
        **{"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
        **{"norm_rel_ebd": "layer_norm", "share_att_key": True, "conv_kernel_size": 3},
    },
    **{"MobileBertModel": {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32}},
    **{"RemBertModel": {"input_embedding_size": 16}, "SqueezeBertModel": {"embedding_size": 32}, "ErnieModel": {}},
    **{"ModernBertModel": {"local_attention": 8, "cls_token_id": 1, "sep_token_id": 2}, "LayoutLMModel": {}},
    **{"EsmModel": {"mask_token_id": 3, "position_embedding_type": "rotary"}, "SplinterModel": {}},
    **{"NystromformerModel": {"num_landmarks": 4, "segment_means_seq_len": 4}, "MegatronBertModel": {}},
    **{"IBertModel": {}, "Data2VecTextModel": {}, "XLMRobertaXLModel": {}, "BigBirdModel": {"block_size": 4}},
    **{"LongformerModel": {"attention_window": 4}, "FNetModel": {}, "YosoModel": {"use_expectation": True}},
}
_ENCODER_DECODERS = {  # class: options beside _SEQ2SEQ
    **{"BartModel": {}, "MarianModel": {}, "MBartModel": {}, "PegasusModel": {}, "BlenderbotModel": {}},
    **{"M2M100Model": {}, "PLBartModel": {}},
}
_IMAGES = {  # class: options beside _VISION
    **{"Dinov2Model": {}, "BeitModel": {}, "DeiTModel": {}, "SiglipVisionModel": {}, "CLIPVisionModel": {}},
    **{"ViTMSNModel": {}, "YolosModel": {"num_detection_tokens": 4, "image_size": [32, 32]}, "IJepaModel": {}},
    **{"Dinov2WithRegistersModel": {}, "DINOv3ViTModel": {}, "DPTForDepthEstimation": {
        **{"backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16},
        **{"num_labels": 5, "reassemble_factors": [4, 2, 1, 0.5], "num_hidden_layers": 4},
    }},
}  # fmt: skip

ARCHITECTURES: dict[str, Architecture] = {
    **{name: Architecture(name, _text, _GROUPED | own, _NO_CACHE) for name, own in _DECODERS.items()},
    "FalconModel": Architecture("FalconModel", _text, _USUAL | {"alibi": False}, _NO_CACHE),
    "FalconModel alibi": Architecture("FalconModel", _text, _USUAL | {"alibi": True}, _NO_CACHE),
    "OPTModel": Architecture("OPTModel", _text, _USUAL | {"ffn_dim": 64, "word_embed_proj_dim": 32}, _NO_CACHE),
    "BloomModel": Architecture("BloomModel", _text, _USUAL | {"n_layer": 2, "n_head": 4}, _NO_CACHE),
    "GPTNeoModel": Architecture(
        "GPTNeoModel",
        _text,
        _USUAL | {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 8},
        _NO_CACHE,
    ),
    "GPTJModel": Architecture(
        "GPTJModel", _text, _USUAL | {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}, _NO_CACHE
    ),
    "MptModel": Architecture("MptModel", _text, _USUAL | {"d_model": 32, "n_layers": 2, "n_heads": 4}, _NO_CACHE),
    "DeepseekV3Model": Architecture(
        "DeepseekV3Model",
        _text,
        _GROUPED
        | {
            **{"num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "head_dim": 4},
            **{"qk_nope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 4, "num_experts_per_tok": 2},
            **{"n_group": 2, "topk_group": 1, "moe_intermediate_size": 16, "first_k_dense_replace": 1},
        },
        _NO_CACHE,
    ),
    "MambaModel": Architecture("MambaModel", _tokens, _USUAL | {"state_size": 4}, _NO_CACHE, static=("length",)),
    "Mamba2Model": Architecture(
        "Mamba2Model",
        _tokens,
        _USUAL | {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4},
        _NO_CACHE,
    ),
    "RecurrentGemmaModel": Architecture(
        "RecurrentGemmaModel",
        _text,
        _GROUPED | {"lru_width": 32, "attention_window_size": 8, "num_hidden_layers": 3},
        _NO_CACHE,
    ),
    **{name: Architecture(name, _text, _USUAL | own) for name, own in _ENCODERS.items() if name != "FNetModel"},
    "FNetModel": Architecture("FNetModel", _tokens, _USUAL, static=("length",)),
    "XLNetModel": Architecture(
        "XLNetModel",
        _text,
        {"vocab_size": 100, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "use_mems_eval": False},
        static=("length",),
    ),
    "XLMModel": Architecture("XLMModel", _text, _USUAL | {"emb_dim": 32, "n_layers": 2, "n_heads": 4}, _NO_CACHE),
    "FunnelModel": Architecture(
        "FunnelModel",
        _text,
        {"vocab_size": 100, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64},
    ),
    "CanineModel": Architecture(
        "CanineModel",
        _text,
        _USUAL | {"num_hash_buckets": 50, "local_transformer_stride": 8, "downsampling_rate": 4},
        static=("length",),
    ),
    **{name: Architecture(name, _encoded_text, _SEQ2SEQ | own, _NO_CACHE) for name, own in _ENCODER_DECODERS.items()},
    "MT5Model": Architecture("MT5Model", _encoded_text, _T5, _NO_CACHE),
    "LongT5Model": Architecture(
        "LongT5Model", _encoded_text, _T5 | {"local_radius": 4, "encoder_attention_type": "local"}, _NO_CACHE
    ),
    "SwitchTransformersModel": Architecture(
        "SwitchTransformersModel",
        _encoded_text,
        _T5 | {"num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
        _NO_CACHE,
    ),
    "LEDModel": Architecture(
        "LEDModel",
        _encoded_text,
        _SEQ2SEQ
        | {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}
        | {"attention_window": 4},
        _NO_CACHE,
    ),
    "ProphetNetModel": Architecture(
        "ProphetNetModel",
        _encoded_text,
        {
            **{"vocab_size": 100, "hidden_size": 32, "num_encoder_layers": 1, "num_decoder_layers": 1},
            **{"num_encoder_attention_heads": 4},
            **{"num_decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "ngram": 2},
        },
        _NO_CACHE,
    ),
    **{name: Architecture(name, _image(32), _VISION | own) for name, own in _IMAGES.items()},
    "DepthAnythingForDepthEstimation": Architecture(
        "DepthAnythingForDepthEstimation",
        _image(28),
        {
            "backbone_config": {"model_type": "dinov2", **_VISION, "image_size": 28, "patch_size": 7}
            | {"out_features": ["stage1", "stage2"], "reshape_hidden_states": False},
            **{"patch_size": 7, "reassemble_hidden_size": 32, "reassemble_factors": [1, 0.5]},
            **{"neck_hidden_sizes": [8, 16], "fusion_hidden_size": 8, "head_hidden_size": 8},
        },
    ),
    "Siglip2VisionModel": Architecture("Siglip2VisionModel", _patches, _VISION | {"num_patches": 16}),
    "SwinModel": Architecture(
        "SwinModel",
        _image(32),
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
    "Swinv2Model": Architecture(
        "Swinv2Model",
        _image(32),
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
    "SegformerForSemanticSegmentation": Architecture("SegformerForSemanticSegmentation", _image(64), _STAGES),
    "GLPNForDepthEstimation": Architecture("GLPNForDepthEstimation", _image(64), _STAGES),
    "PvtModel": Architecture("PvtModel", _image(64), _STAGES | {"image_size": 64, "mlp_ratios": [2, 2, 2, 2]}),
    "ResNetModel": Architecture("ResNetModel", _image(64), _CONVOLUTIONS),
    "RegNetModel": Architecture("RegNetModel", _image(64), _CONVOLUTIONS | {"groups_width": 8}),
    "BitModel": Architecture("BitModel", _image(64), _CONVOLUTIONS | {"num_groups": 2}),
    "ConvNextModel": Architecture("ConvNextModel", _image(64), _CONVOLUTIONS),
    "ConvNextV2Model": Architecture("ConvNextV2Model", _image(64), _CONVOLUTIONS),
    "PoolFormerModel": Architecture("PoolFormerModel", _image(64), {"hidden_sizes": [8, 8, 16, 16]}),
    "FocalNetModel": Architecture(
        "FocalNetModel", _image(32), {"image_size": 32, "embed_dim": 16, "depths": [1, 1, 1, 1]}
    ),
    "LevitModel": Architecture("LevitModel", _image(64), {"image_size": 64}),
    "MobileViTModel": Architecture(
        "MobileViTModel",
        _image(64),
        {"image_size": 64, "hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32]},
    ),
    "MobileNetV2Model": Architecture("MobileNetV2Model", _image(64), {"depth_multiplier": 0.25, "image_size": 64}),
    "EfficientNetModel": Architecture(
        "EfficientNetModel", _image(64), {"width_coefficient": 0.2, "image_size": 64, "hidden_dim": 256}
    ),
    "HieraModel": Architecture(
        "HieraModel",
        _image(64),
        {"image_size": [64, 64], "embed_dim": 16, "depths": [1, 1, 1], "num_heads": [1, 2, 4], "query_stride": [2, 2]}
        | {"masked_unit_size": [4, 4], "masked_unit_attention": [True, True, False], "num_query_pool": 2},
    ),
    "Swin2SRForImageSuperResolution": Architecture(
        "Swin2SRForImageSuperResolution",
        _image(32),
        {"image_size": 32, "embed_dim": 16, "depths": [2], "num_heads": [2], "window_size": 8, "upscale": 2},
    ),
    "UperNetForSemanticSegmentation": Architecture(
        "UperNetForSemanticSegmentation",
        _image(64),
        {
            "backbone_config": {"model_type": "convnext", **_CONVOLUTIONS, "num_stages": 4}
            | {"out_features": ["stage1", "stage2", "stage3", "stage4"]},
            "hidden_size": 16,
            "auxiliary_channels": 8,
        }
        | {"auxiliary_in_channels": 24, "num_labels": 5},
    ),
    "DetrForObjectDetection": Architecture(
        "DetrForObjectDetection", _image(64), _DETR | {"backbone_config": _RESNET | {"out_features": ["stage4"]}}
    ),
    "ConditionalDetrForObjectDetection": Architecture(
        "ConditionalDetrForObjectDetection",
        _image(64),
        _DETR | {"backbone_config": _RESNET | {"out_features": ["stage4"]}},
    ),
    "DeformableDetrForObjectDetection": Architecture(
        "DeformableDetrForObjectDetection",
        _image(64),
        _DETR | {"backbone_config": _RESNET, "num_feature_levels": 3},
    ),
    "RTDetrForObjectDetection": Architecture(
        "RTDetrForObjectDetection",
        _image(64),
        _DETR
        | {
            "backbone_config": {"model_type": "rt_detr_resnet", **_CONVOLUTIONS, "layer_type": "basic"}
            | {"out_features": ["stage2", "stage3", "stage4"]},
            **{"encoder_in_channels": [16, 24, 32], "encoder_hidden_dim": 32, "decoder_in_channels": [32, 32, 32]},
            **{"num_denoising": 0, "initializer_range": 0.3},  # large enough that scores of queries differ
        },
    ),
    "MaskFormerForInstanceSegmentation": Architecture(
        "MaskFormerForInstanceSegmentation",
        _image(64),
        {
            "backbone_config": {"model_type": "swin", "image_size": 64, "embed_dim": 8, "depths": [1, 1, 1, 1]}
            | {"num_heads": [1, 1, 2, 2], "window_size": 2, "out_features": [f"stage{i}" for i in range(1, 5)]},
            "decoder_config": {"model_type": "detr", **_DETR, "backbone_config": None},
            **{"fpn_feature_size": 32, "mask_feature_size": 32, "num_labels": 5},
        },
    ),
    "SamModel vision encoder": Architecture(
        "SamModel",
        _image(32),
        {
            "vision_config": _VISION
            | {"output_channels": 16, "window_size": 2, "global_attn_indexes": [1]}
            | {"mlp_dim": 64}
        },
        part="vision_encoder",
    ),
    "VitMatteForImageMatting": Architecture(
        "VitMatteForImageMatting",
        _image(32, 4),
        {
            "backbone_config": {"model_type": "vitdet", "num_channels": 4, **_VISION, "out_features": ["stage2"]}
            | {"patch_size": 16, "window_size": 2, "window_block_indices": [0], "pretrain_image_size": 32}
        }
        | {"hidden_size": 32, "fusion_hidden_sizes": [16, 8, 8, 4], "convstream_hidden_sizes": [8, 8, 8]},
    ),
    "VideoMAEModel": Architecture("VideoMAEModel", _video(32, 4), _VISION | {"num_frames": 4, "tubelet_size": 2}),
    "TimesformerModel": Architecture("TimesformerModel", _video(32, 4), _VISION | {"num_frames": 4}),
    "CLIPModel": Architecture(
        "CLIPModel", _image_and_text(32), {"text_config": _USUAL, "vision_config": _VISION, "projection_dim": 16}
    ),
    "SiglipModel": Architecture("SiglipModel", _image_and_text(32), {"text_config": _USUAL, "vision_config": _VISION}),
    "BlipForConditionalGeneration": Architecture(
        "BlipForConditionalGeneration",
        _image_and_text(32),
        {"text_config": _USUAL | {"encoder_hidden_size": 32}, "vision_config": _VISION, "image_text_hidden_size": 16},
    ),
    "ViltModel": Architecture("ViltModel", _image_and_text(32), _USUAL | _VISION),
    **{
        name: Architecture(name, _sound, _SOUND)
        for name in ("Wav2Vec2Model", "HubertModel", "WavLMModel", "UniSpeechModel", "Data2VecAudioModel", "SEWModel")
    },
    "Wav2Vec2Model layer norm": Architecture(
        "Wav2Vec2Model",
        _sound,
        _SOUND | {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "add_adapter": True},
    ),
    "ASTModel": Architecture(
        "ASTModel", _spectrogram, _VISION | {"max_length": 40, "num_mel_bins": 32, "patch_size": 8}
    ),
    "WhisperModel": Architecture(
        "WhisperModel",
        _mel_and_text(16, 40),
        _SEQ2SEQ | {"num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 40},
        _NO_CACHE,
    ),
    "SpeechT5HifiGan": Architecture(
        "SpeechT5HifiGan",
        _mel_frames,
        {"model_in_dim": 16, "upsample_initial_channel": 32, "upsample_rates": [4, 4], "upsample_kernel_sizes": [8, 8]}
        | {"resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 3, 5]]},
    ),
    "ClapAudioModel": Architecture(
        "ClapAudioModel",
        _fused_mel,
        {"spec_size": 64, "num_mel_bins": 16, "patch_size": 4, "patch_stride": [4, 4], "window_size": 4}
        | {"depths": [1, 1], "num_attention_heads": [2, 2], "patch_embeds_hidden_size": 16, "hidden_size": 32}
        | {"num_hidden_layers": 2, "enable_fusion": False, "projection_dim": 16},
    ),
    "PatchTSTModel": Architecture(
        "PatchTSTModel",
        _past_values,
        {"num_input_channels": 2, "context_length": 32, "patch_length": 4, "patch_stride": 4, "d_model": 16}
        | {"num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32},
    ),
}

_SEGMENTATION = {
    **{"segmentation.deeplabv3_resnet50": {}, "segmentation.deeplabv3_mobilenet_v3_large": {}},
    **{"segmentation.fcn_resnet50": {}, "segmentation.lraspp_mobilenet_v3_large": {}},
}
_DETECTION = (
    *("detection.ssdlite320_mobilenet_v3_large", "detection.ssd300_vgg16", "detection.retinanet_resnet50_fpn"),
    *("detection.fcos_resnet50_fpn", "detection.fasterrcnn_mobilenet_v3_large_320_fpn"),
    *("detection.maskrcnn_resnet50_fpn", "detection.keypointrcnn_resnet50_fpn"),
)
_NO_WEIGHTS = {"weights_backbone": None}
ARCHITECTURES |= {
    **{
        name: Architecture(name, _image(64), {"num_classes": 5, **_NO_WEIGHTS, **own}, library="torchvision")
        for name, own in _SEGMENTATION.items()
    },
    **{
        name: Architecture(
            name, _image(64), {"num_classes": 5, **_NO_WEIGHTS}, library="torchvision", static=("batch",)
        )
        for name in _DETECTION
    },
    "optical_flow.raft_small": Architecture(
        "optical_flow.raft_small",
        lambda sizes: {name: (torch.randn(sizes["batch"], 3, 128, 128), {0: "batch"}) for name in ("image1", "image2")},
        library="torchvision",
        static=("batch",),
    ),
    **{
        name: Architecture(name, _clip(*shape), library="torchvision")
        for name, shape in {
            **{"video.r3d_18": (4, 32), "video.r2plus1d_18": (4, 32), "video.s3d": (14, 224)},
            **{"video.swin3d_t": (8, 64), "video.mvit_v1_b": (16, 224), "video.mvit_v2_s": (16, 224)},
        }.items()
    },
    "googlenet": Architecture("googlenet", _image(64), {"init_weights": False}, library="torchvision"),
    "inception_v3": Architecture("inception_v3", _image(96), {"init_weights": False}, library="torchvision"),
}
